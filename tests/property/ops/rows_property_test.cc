// Every version of the row operations equals the scalar one bit for bit over
// lengths around the vector length, odd strides, misaligned rows and special
// values.

#include <vector>

#include "gtest/gtest.h"
#include "tests/property/ops/versions.h"

namespace millrace::kernels {
namespace {

std::vector<int64_t> Lengths() {
  std::vector<int64_t> lengths = {576, 1000, 1536, 2048};
  for (int64_t n = 1; n <= 70; ++n) {
    lengths.push_back(n);
  }
  return lengths;
}

TEST(RowsProperty, RmsNorm) {
  const KernelTable scalar = BuildKernelTable(Isa::kScalar);
  const std::vector<Version> versions = OtherVersions();
  ValueMaker values(1);
  for (const int64_t n : Lengths()) {
    for (const int64_t special : {0, 0, 300, 20}) {
      const int64_t stride = n + values.Below(5);
      const int64_t offset = values.Below(4);
      const std::vector<float> x =
          values.Vector(3 * stride + offset, 2.0f, special);
      const std::vector<float> g = values.Vector(n, 1.0f, special);
      const bool in_place = values.Chance(2);
      const auto run = [&](const KernelTable& table) {
        std::vector<float> y = in_place ? x : values.Vector(0, 1, 0);
        y.resize(x.size());
        table.rms_norm({.x = (in_place ? y : x).data() + offset,
                        .x_stride = stride,
                        .g = g.data(),
                        .eps = 1e-6f,
                        .n = n,
                        .y = y.data() + offset,
                        .y_stride = stride},
                       0, 3);
        return y;
      };
      const std::vector<float> want = run(scalar);
      for (const Version& version : versions) {
        ASSERT_EQ(FirstDifference(run(version.table), want), -1)
            << version.name << " n " << n;
      }
    }
  }
}

TEST(RowsProperty, Elementwise) {
  const KernelTable scalar = BuildKernelTable(Isa::kScalar);
  const std::vector<Version> versions = OtherVersions();
  ValueMaker values(2);
  for (const int64_t n : Lengths()) {
    for (const float scale : {1.0f, 40.0f}) {
      const int64_t offset = values.Below(4);
      const std::vector<float> a = values.Vector(n + offset, scale, 10);
      const std::vector<float> b = values.Vector(n + offset, scale, 10);
      const float w = values.Normal(1.0f);
      const auto run = [&](const KernelTable& table) {
        std::vector<float> swiglu(n);
        table.swiglu({.gate = a.data() + offset,
                      .gate_stride = n,
                      .up = b.data() + offset,
                      .up_stride = n,
                      .n = n,
                      .y = swiglu.data(),
                      .y_stride = n},
                     0, 1);
        std::vector<float> sum = b;
        table.add(a.data() + offset, sum.data() + offset, n);
        std::vector<float> weighted = b;
        table.axpy(w, a.data() + offset, weighted.data() + offset, n);
        std::vector<float> quotient = b;
        table.sampling.divide(a.data() + offset, w, n,
                              quotient.data() + offset);
        std::vector<float> all = swiglu;
        for (const auto* part : {&sum, &weighted, &quotient}) {
          all.insert(all.end(), part->begin(), part->end());
        }
        return all;
      };
      const std::vector<float> want = run(scalar);
      for (const Version& version : versions) {
        ASSERT_EQ(FirstDifference(run(version.table), want), -1)
            << version.name << " n " << n;
      }
    }
  }
}

TEST(RowsProperty, Rope) {
  const KernelTable scalar = BuildKernelTable(Isa::kScalar);
  const std::vector<Version> versions = OtherVersions();
  ValueMaker values(3);
  for (const int64_t head_dim : {2, 6, 16, 24, 40, 64, 80, 96, 128}) {
    for (int round = 0; round < 20; ++round) {
      const int64_t rotary =
          round < 10 ? head_dim : 2 + 2 * values.Below(head_dim / 2);
      const int64_t heads = 1 + values.Below(5);
      const std::vector<float> x = values.Vector(heads * head_dim, 2, 50);
      const std::vector<float> cos = values.Vector(rotary / 2, 1, 0);
      const std::vector<float> sin = values.Vector(rotary / 2, 1, 0);
      for (const bool interleaved : {false, true}) {
        const auto run = [&](const KernelTable& table) {
          std::vector<float> y = x;
          table.rope({.x = y.data(),
                      .num_heads = heads,
                      .head_dim = head_dim,
                      .rotary_dims = rotary,
                      .interleaved = interleaved,
                      .cos = cos.data(),
                      .sin = sin.data()});
          return y;
        };
        const std::vector<float> want = run(scalar);
        for (const Version& version : versions) {
          ASSERT_EQ(FirstDifference(run(version.table), want), -1)
              << version.name << " head_dim " << head_dim << " rotary "
              << rotary << " interleaved " << interleaved;
        }
      }
    }
  }
}

TEST(RowsProperty, SoftmaxRouter) {
  const KernelTable scalar = BuildKernelTable(Isa::kScalar);
  const std::vector<Version> versions = OtherVersions();
  ValueMaker values(4);
  for (const int64_t n : {1, 2, 7, 8, 15, 16, 17, 32, 60, 64, 128, 130}) {
    for (int round = 0; round < 40; ++round) {
      const int64_t k = 1 + values.Below(std::min<int64_t>(n, 10));
      std::vector<float> logits =
          values.Vector(2 * n, values.Pick<float>({0.01f, 1, 30}),
                        values.Pick<int64_t>({0, 0, 200}));
      if (values.Chance(2)) {
        for (float& logit : logits) {
          logit = std::rint(logit);
        }
      }
      const bool renormalise = values.Chance(2);
      const auto run = [&](const KernelTable& table) {
        std::vector<int32_t> experts(2 * k);
        std::vector<float> weights(2 * k);
        std::vector<float> scratch(n);
        table.softmax_router({.logits = logits.data(),
                              .logits_stride = n,
                              .num_experts = n,
                              .num_chosen = k,
                              .renormalise = renormalise,
                              .experts = experts.data(),
                              .weights = weights.data(),
                              .scratch = scratch.data()},
                             0, 2);
        return std::pair(experts, weights);
      };
      const auto want = run(scalar);
      for (const Version& version : versions) {
        const auto got = run(version.table);
        ASSERT_EQ(got.first, want.first) << version.name << " n " << n;
        ASSERT_EQ(FirstDifference(got.second, want.second), -1)
            << version.name << " n " << n;
      }
    }
  }
}

TEST(RowsProperty, SamplingPasses) {
  const KernelTable scalar = BuildKernelTable(Isa::kScalar);
  const std::vector<Version> versions = OtherVersions();
  ValueMaker values(5);
  for (const int64_t n : {1, 15, 16, 17, 1000, 1023, 1024, 1025, 1040, 5003}) {
    for (const int64_t special : {0, 100, 3000}) {
      const std::vector<float> x = values.Vector(n, 20.0f, special);
      const float max = values.Normal(10.0f);
      const auto run = [&](const KernelTable& table) {
        std::vector<float> all(n);
        std::vector<float> sums((n + 1023) / 1024);
        std::vector<float> again(sums.size());
        table.sampling.exp_block_sums(x.data(), max, n, all.data(),
                                      sums.data());
        table.sampling.exp_block_sums(x.data(), max, n, nullptr, again.data());
        all.insert(all.end(), sums.begin(), sums.end());
        all.insert(all.end(), again.begin(), again.end());
        all.push_back(table.sampling.row_max(x.data(), n));
        return all;
      };
      const std::vector<float> want = run(scalar);
      for (const Version& version : versions) {
        ASSERT_EQ(FirstDifference(run(version.table), want), -1)
            << version.name << " n " << n;
      }
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
