// Rates of attention and of the row operations, one thread, for each
// instruction set of this processor. Not part of ctest.

#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/kernel_table.h"
#include "stage-worker/sampling/sampler.h"

namespace millrace::kernels {
namespace {

struct Shape {
  int64_t heads;
  int64_t kv_heads;
  int64_t dims;
};

// The last `rows` positions of one sequence of `context` positions.
void BenchAttention(benchmark::State& state, Isa isa, Shape shape,
                    int64_t context, int64_t rows) {
  const KernelTable table = BuildKernelTable(isa);
  const int64_t blocks = (context + 63) / 64;
  const int64_t block_bytes =
      KvBlockBytes(KvType::kF16, shape.kv_heads, shape.dims);
  // 0x2c2c is a half of about 0.065.
  const auto pool_bytes = static_cast<size_t>(blocks * block_bytes);
  auto* pool = static_cast<std::byte*>(
      ::operator new (pool_bytes, std::align_val_t{64}));
  std::memset(pool, 0x2c, pool_bytes);
  std::vector<int32_t> block_table(blocks);
  for (int64_t b = 0; b < blocks; ++b) {
    block_table[b] = static_cast<int32_t>(b);
  }
  std::vector<AttentionRow> attention_rows;
  for (int64_t r = 0; r < rows; ++r) {
    attention_rows.push_back({.blocks = block_table.data(),
                              .num_blocks = blocks,
                              .first_visible = 0,
                              .position = context - rows + r});
  }
  const int64_t width = shape.heads * shape.dims;
  std::vector<float> q(rows * width, 0.1f);
  std::vector<float> out(rows * width);
  std::vector<std::byte> scratch(
      AttentionScratchBytes(shape.heads, shape.kv_heads, shape.dims));
  const AttentionArgs args{.q = q.data(),
                           .q_stride = width,
                           .out = out.data(),
                           .out_stride = width,
                           .rows = attention_rows.data(),
                           .num_rows = rows,
                           .num_heads = shape.heads,
                           .num_kv_heads = shape.kv_heads,
                           .head_dim = shape.dims,
                           .scale = 0.125f,
                           .pool = pool,
                           .block_bytes = block_bytes};
  for (auto _ : state) {
    table.attention[static_cast<int>(KvType::kF16)](
        args, 0, rows * shape.kv_heads, scratch.data());
    benchmark::DoNotOptimize(out.data());
  }
  ::operator delete (pool, std::align_val_t{64});
  double pairs = 0;
  for (const AttentionRow& row : attention_rows) {
    pairs += static_cast<double>(row.position + 1);
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["gflops"] =
      benchmark::Counter(runs * pairs * static_cast<double>(width) * 4e-9,
                         benchmark::Counter::kIsRate);
  state.counters["kv_gb"] =
      benchmark::Counter(runs * static_cast<double>(pool_bytes) * 1e-9,
                         benchmark::Counter::kIsRate);
}

void BenchSwiglu(benchmark::State& state, Isa isa) {
  const KernelTable table = BuildKernelTable(isa);
  const int64_t n = 8192;
  const std::vector<float> gate(n, 0.3f);
  const std::vector<float> up(n, 0.7f);
  std::vector<float> y(n);
  for (auto _ : state) {
    table.swiglu({.gate = gate.data(),
                  .gate_stride = n,
                  .up = up.data(),
                  .up_stride = n,
                  .n = n,
                  .y = y.data(),
                  .y_stride = n},
                 0, 1);
    benchmark::DoNotOptimize(y.data());
  }
  state.SetItemsProcessed(state.iterations() * n);
}

void BenchRmsNorm(benchmark::State& state, Isa isa) {
  const KernelTable table = BuildKernelTable(isa);
  const int64_t n = 2048;
  const std::vector<float> x(n, 0.3f);
  std::vector<float> y(n);
  for (auto _ : state) {
    table.rms_norm({.x = x.data(),
                    .x_stride = n,
                    .g = x.data(),
                    .eps = 1e-5f,
                    .n = n,
                    .y = y.data(),
                    .y_stride = n},
                   0, 1);
    benchmark::DoNotOptimize(y.data());
  }
  state.SetItemsProcessed(state.iterations() * n);
}

// One token out of 128,256, with the options given.
void BenchSampler(benchmark::State& state, Isa isa,
                  const transport::SamplingOptions& options, bool logprobs) {
  const int64_t vocab = 128256;
  std::vector<float> logits(vocab);
  for (int64_t i = 0; i < vocab; ++i) {
    // Roughly bell shaped, with a few high ones.
    const uint32_t r =
        Philox4x32(7, {{static_cast<uint32_t>(i), 0, 0, 0}}).words[0];
    logits[i] = static_cast<float>(__builtin_popcount(r)) - 16.0f +
                static_cast<float>(r >> 8) * 0x1p-24f;
  }
  worker::Sampler sampler(BuildKernelTable(isa).sampling, vocab);
  transport::Result result;
  int64_t position = 0;
  for (auto _ : state) {
    sampler.Sample({.logits = logits,
                    .position = ++position,
                    .options = &options,
                    .wants_logprob = logprobs,
                    .num_top = 20},
                   result);
    benchmark::DoNotOptimize(result.token);
  }
}

void RegisterAttention(Isa isa) {
  const std::string name = IsaName(isa);
  for (const Shape shape : {Shape{32, 8, 64}, {32, 8, 128}, {9, 3, 64}}) {
    const std::string text = std::to_string(shape.heads) + "_" +
                             std::to_string(shape.kv_heads) + "x" +
                             std::to_string(shape.dims);
    for (const int64_t context : {512, 4096, 16384}) {
      benchmark::RegisterBenchmark(
          (name + "/decode/" + text + "/" + std::to_string(context)).c_str(),
          [=](benchmark::State& state) {
            BenchAttention(state, isa, shape, context, 1);
          });
    }
    benchmark::RegisterBenchmark((name + "/prefill512/" + text).c_str(),
                                 [=](benchmark::State& state) {
                                   BenchAttention(state, isa, shape, 512, 512);
                                 });
  }
}

void RegisterSampler(Isa isa) {
  const std::string name = IsaName(isa);
  transport::SamplingOptions greedy;
  transport::SamplingOptions plain;
  plain.temperature = 1;
  transport::SamplingOptions top_p = plain;
  top_p.top_p = 0.9f;
  transport::SamplingOptions top_k = plain;
  top_k.top_k = 40;
  const auto add = [&](const char* what,
                       const transport::SamplingOptions& options,
                       bool logprobs) {
    benchmark::RegisterBenchmark((name + "/sample/" + what).c_str(),
                                 [=](benchmark::State& state) {
                                   BenchSampler(state, isa, options, logprobs);
                                 });
  };
  add("greedy", greedy, false);
  add("greedy_logprobs", greedy, true);
  add("plain", plain, false);
  add("top_p", top_p, false);
  add("top_k", top_k, false);
}

void RegisterAll() {
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
    if (!HostSupports(isa)) {
      continue;
    }
    const std::string name = IsaName(isa);
    RegisterAttention(isa);
    RegisterSampler(isa);
    benchmark::RegisterBenchmark(
        (name + "/swiglu").c_str(),
        [=](benchmark::State& state) { BenchSwiglu(state, isa); });
    benchmark::RegisterBenchmark(
        (name + "/rms_norm").c_str(),
        [=](benchmark::State& state) { BenchRmsNorm(state, isa); });
  }
}

}  // namespace
}  // namespace millrace::kernels

int main(int argc, char** argv) {
  millrace::kernels::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
