#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"

namespace millrace::kernels {
namespace {

const KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBf16,
                         KvType::kInt8};

// Keys and values of one sequence, stored through the kernel into a ring of
// blocks whose unused places hold NaN.
struct Cache {
  int64_t kv_heads;
  int64_t dims;
  KvType type;
  std::vector<int32_t> table;
  std::vector<std::byte> pool;
  std::vector<std::vector<float>> k;
  std::vector<std::vector<float>> v;

  [[nodiscard]] int64_t block_bytes() const {
    return KvBlockBytes(type, kv_heads, dims);
  }
};

Cache MakeCache(KvType type, int64_t kv_heads, int64_t dims, int64_t positions,
                std::vector<int32_t> table) {
  const KernelTable kernels = BuildKernelTable(Isa::kScalar);
  Cache cache{kv_heads, dims, type, std::move(table), {}, {}, {}};
  const int32_t blocks =
      *std::max_element(cache.table.begin(), cache.table.end()) + 1;
  cache.pool.assign(blocks * cache.block_bytes(), std::byte{0xff});
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  for (int64_t position = 0; position < positions; ++position) {
    std::vector<float> k(kv_heads * dims);
    std::vector<float> v(kv_heads * dims);
    std::generate(k.begin(), k.end(), [&] { return normal(random); });
    std::generate(v.begin(), v.end(), [&] { return normal(random); });
    const auto slot = static_cast<size_t>(position / 64) % cache.table.size();
    const bool fits = kernels.kv_store[static_cast<int>(type)](
        {.k = k.data(),
         .v = v.data(),
         .num_kv_heads = kv_heads,
         .head_dim = dims,
         .block = cache.pool.data() + cache.table[slot] * cache.block_bytes(),
         .position_in_block = position % 64});
    EXPECT_TRUE(fits);
    cache.k.push_back(std::move(k));
    cache.v.push_back(std::move(v));
  }
  return cache;
}

// Softmax attention of one head in double.
std::vector<double> Naive(const Cache& cache, const float* q, double scale,
                          int64_t kv_head, int64_t first, int64_t last) {
  std::vector<double> scores;
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t j = first; j <= last; ++j) {
    double s = 0;
    for (int64_t d = 0; d < cache.dims; ++d) {
      s += scale * q[d] * cache.k[j][kv_head * cache.dims + d];
    }
    scores.push_back(s);
    max = std::max(max, s);
  }
  double sum = 0;
  std::vector<double> out(cache.dims);
  for (int64_t j = first; j <= last; ++j) {
    const double p = std::exp(scores[j - first] - max);
    sum += p;
    for (int64_t d = 0; d < cache.dims; ++d) {
      out[d] += p * cache.v[j][kv_head * cache.dims + d];
    }
  }
  for (double& o : out) {
    o /= sum;
  }
  return out;
}

double Tolerance(KvType type) {
  switch (type) {
    case KvType::kF32:
      return 2e-6;
    case KvType::kF16:
      return 4e-3;
    case KvType::kBf16:
      return 3e-2;
    case KvType::kInt8:
      return 1e-1;
  }
  return 0;
}

// Attention over several blocks, with windows and grouped heads, follows
// softmax in double; places out of sight hold NaN and would show.
TEST(Attention, FollowsNaiveSoftmax) {
  const KernelTable kernels = BuildKernelTable(Isa::kScalar);
  for (const KvType type : kTypes) {
    const int64_t kv_heads = 2;
    const int64_t heads = 6;
    const int64_t dims = 40;
    const Cache cache = MakeCache(type, kv_heads, dims, 200, {3, 0, 2, 5});
    std::mt19937 random(18);
    std::normal_distribution<float> normal;
    std::vector<float> q(heads * dims);
    std::vector<float> out(heads * dims);
    std::vector<std::byte> scratch(
        AttentionScratchBytes(heads, kv_heads, dims));
    for (const int64_t position : {0, 1, 15, 16, 63, 64, 65, 127, 150, 199}) {
      for (const int64_t window : {1, 20, 64, 1000}) {
        std::generate(q.begin(), q.end(), [&] { return 2 * normal(random); });
        const AttentionRow row{
            .blocks = cache.table.data(),
            .num_blocks = 4,
            .first_visible = std::max<int64_t>(0, position - window + 1),
            .position = position};
        const AttentionArgs args{.q = q.data(),
                                 .q_stride = heads * dims,
                                 .out = out.data(),
                                 .out_stride = heads * dims,
                                 .rows = &row,
                                 .num_rows = 1,
                                 .num_heads = heads,
                                 .num_kv_heads = kv_heads,
                                 .head_dim = dims,
                                 .scale = 0.2f,
                                 .pool = cache.pool.data(),
                                 .block_bytes = cache.block_bytes()};
        kernels.attention[static_cast<int>(type)](args, 0, kv_heads,
                                                  scratch.data());
        for (int64_t h = 0; h < heads; ++h) {
          const std::vector<double> want =
              Naive(cache, q.data() + h * dims, 0.2f, h / 3, row.first_visible,
                    position);
          for (int64_t d = 0; d < dims; ++d) {
            ASSERT_NEAR(out[h * dims + d], want[d], Tolerance(type))
                << position << " " << window << " " << h << " " << d;
          }
        }
      }
    }
  }
}

// A ring of two blocks serves a window of 64 wherever the sequence stands.
TEST(Attention, RingTable) {
  const KernelTable kernels = BuildKernelTable(Isa::kScalar);
  const Cache cache = MakeCache(KvType::kF32, 1, 16, 300, {1, 0});
  std::vector<float> q(16, 0.5f);
  std::vector<float> out(16);
  std::vector<std::byte> scratch(AttentionScratchBytes(1, 1, 16));
  const AttentionRow row{.blocks = cache.table.data(),
                         .num_blocks = 2,
                         .first_visible = 236,
                         .position = 299};
  kernels.attention[0]({.q = q.data(),
                        .q_stride = 16,
                        .out = out.data(),
                        .out_stride = 16,
                        .rows = &row,
                        .num_rows = 1,
                        .num_heads = 1,
                        .num_kv_heads = 1,
                        .head_dim = 16,
                        .scale = 0.25f,
                        .pool = cache.pool.data(),
                        .block_bytes = cache.block_bytes()},
                       0, 1, scratch.data());
  const std::vector<double> want = Naive(cache, q.data(), 0.25, 0, 236, 299);
  for (size_t d = 0; d < 16; ++d) {
    EXPECT_NEAR(out[d], want[d], 2e-6);
  }
}

// A finite value beyond the stored type is reported, an infinite one is not;
// all is stored in both cases.
TEST(KvStore, ReportsOverflow) {
  const KernelTable kernels = BuildKernelTable(Isa::kScalar);
  const float inf = std::numeric_limits<float>::infinity();
  const auto store = [&](KvType type, float value) {
    std::vector<float> k(16, 1.0f);
    std::vector<float> v(16, 1.0f);
    v[3] = value;
    v[15] = 0.0f;
    std::vector<std::byte> block(KvBlockBytes(type, 1, 16));
    return kernels.kv_store[static_cast<int>(type)]({.k = k.data(),
                                                     .v = v.data(),
                                                     .num_kv_heads = 1,
                                                     .head_dim = 16,
                                                     .block = block.data(),
                                                     .position_in_block = 5});
  };
  EXPECT_TRUE(store(KvType::kF16, 65519.0f));
  EXPECT_FALSE(store(KvType::kF16, 65520.0f));
  EXPECT_FALSE(store(KvType::kF16, -1e30f));
  EXPECT_TRUE(store(KvType::kF16, inf));
  EXPECT_TRUE(store(KvType::kBf16, 1e38f));
  EXPECT_FALSE(store(KvType::kBf16, std::numeric_limits<float>::max()));
  EXPECT_TRUE(store(KvType::kF32, std::numeric_limits<float>::max()));
  EXPECT_TRUE(store(KvType::kInt8, 3.4e38f));
  EXPECT_TRUE(store(KvType::kInt8, inf));
  // Its scale is rounded up: 127 times it is beyond the largest float.
  EXPECT_FALSE(store(KvType::kInt8, -std::numeric_limits<float>::max()));
}

// The layout and the codes that are kept of int8: a scale for every 32 dims and
// one for the rest, NaN for a group with a NaN or infinity, 0 for one of
// nothing but tiny numbers.
TEST(KvStore, Int8CodesAndScales) {
  constexpr int64_t kDims = 34;
  const KernelTable kernels = BuildKernelTable(Isa::kScalar);
  std::vector<float> k(kDims, 0.0f);
  std::vector<float> v(kDims, 0.0f);
  k[0] = -254.0f;
  k[1] = 1.0f;
  k[2] = 3.0f;
  k[33] = 0x1p-101f;
  v[31] = std::numeric_limits<float>::infinity();
  v[32] = 127.0f;
  v[33] = -2.5f;
  constexpr int64_t kTile = 16 * kDims + 2 * 64;
  ASSERT_EQ(KvBlockBytes(KvType::kInt8, 1, kDims), 8 * kTile);
  std::vector<std::byte> block(8 * kTile, std::byte{0x55});
  EXPECT_TRUE(kernels.kv_store[static_cast<int>(KvType::kInt8)](
      {.k = k.data(),
       .v = v.data(),
       .num_kv_heads = 1,
       .head_dim = kDims,
       .block = block.data(),
       .position_in_block = 37}));
  const auto code = [&](int64_t at) { return static_cast<int8_t>(block[at]); };
  const auto scale = [&](int64_t at) {
    float value;
    std::memcpy(&value, block.data() + at, sizeof(value));
    return value;
  };
  const int64_t keys = 2 * kTile + 5;  // position 37 is the fifth of tile 2
  EXPECT_EQ(code(keys), -127);
  EXPECT_EQ(code(keys + 16), 0);      // 0.5, to even
  EXPECT_EQ(code(keys + 2 * 16), 2);  // 1.5
  EXPECT_EQ(code(keys + 33 * 16), 0);
  EXPECT_EQ(scale(2 * kTile + 16 * kDims + 5 * 4), 2.0f);
  EXPECT_EQ(scale(2 * kTile + 16 * kDims + 64 + 5 * 4), 0.0f);
  const int64_t values = 4 * kTile + 37 * kDims;
  EXPECT_EQ(code(values + 31), 0);
  EXPECT_EQ(code(values + 32), 127);
  EXPECT_EQ(code(values + 33), -2);
  const int64_t value_scales = 4 * kTile + 64 * kDims + 37 * 8;
  EXPECT_TRUE(std::isnan(scale(value_scales)));
  EXPECT_EQ(scale(value_scales + 4), 1.0f);
}

}  // namespace
}  // namespace millrace::kernels
