// Speed of matrix products, one thread: bytes of weights a second for one
// token, beside plain reading of as many bytes, and operations a second for a
// long prompt. Run on a quiet machine:
//   build/release/tests/bench/matmul/bench_matmul --benchmark_filter=avx512

#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_versions.h"
#include "kernels/quant/tile.h"
#include "tests/unit/kernels/matmul_case.h"

namespace millrace::kernels {
namespace {

constexpr int64_t kCols = 2048;
// More than the last cache of the machines we know.
constexpr int64_t kStreamedBytes = int64_t{96} << 20;
constexpr int64_t kPromptTokens = 512;
constexpr int64_t kPromptRows = 1024;

struct Version {
  const KernelVersion* kernels;
  ComputeMode mode;
  WeightFormat format;
};

// What a processor would run that has this version and those before it.
KernelTable TableOf(const KernelVersion& kernels) {
  KernelTable table = BuildKernelTable(Isa::kScalar);
  for (const KernelVersion& version : KernelVersions()) {
    if (version.host_supports()) {
      version.add(table);
    }
    if (&version == &kernels) {
      break;
    }
  }
  return table;
}

// Tiles of random weights: one packed tile, repeated.
AlignedBytes RepeatedTiles(WeightFormat format, int64_t num_tiles,
                           std::mt19937& random) {
  const int64_t tile_bytes = TileBytes(format, kCols);
  AlignedBytes tiles(num_tiles * tile_bytes);
  const std::vector<std::byte> row =
      RandomRow(format, kCols, Spread::kOrdinary, random);
  for (int64_t i = 0; i < num_tiles; ++i) {
    std::byte* tile = tiles.data() + i * tile_bytes;
    if (i == 0) {
      PackTile(format, row.data(), 0, kTileRows, kCols, tile);
    } else {
      std::memcpy(tile, tiles.data(), static_cast<size_t>(tile_bytes));
    }
  }
  return tiles;
}

void MatMul(benchmark::State& state, const Version& version, int64_t num_tiles,
            int64_t tokens) {
  std::mt19937 random(1);
  const KernelTable table = TableOf(*version.kernels);
  const ActivationForm form = ActivationFormFor(version.mode, version.format);
  const AlignedBytes tiles = RepeatedTiles(version.format, num_tiles, random);
  std::vector<float> x(static_cast<size_t>(tokens * kCols));
  for (float& value : x) {
    value = RandomFloat(Spread::kOrdinary, random);
  }
  AlignedBytes packed(PackedActivationBytes(form, tokens, kCols));
  const int64_t rows = num_tiles * kTileRows;
  std::vector<float> y(static_cast<size_t>(tokens * rows));
  const PackActivationsArgs pack_args = {x.data(), kCols, nullptr,
                                         tokens,   kCols, packed.data()};
  const MatMulArgs args = {tiles.data(), rows,    kCols,    packed.data(),
                           tokens,       nullptr, y.data(), rows};
  const MatMulFn matmul = table.matmul[static_cast<int>(version.mode)]
                                      [static_cast<int>(version.format)];
  for (auto _ : state) {
    table.pack_activations[static_cast<int>(form)](pack_args, 0,
                                                   NumPanels(tokens));
    matmul(args, 0, num_tiles);
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  const double iterations = static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(
      iterations * 1e-9 *
          static_cast<double>(num_tiles * TileBytes(version.format, kCols)),
      benchmark::Counter::kIsRate);
  state.counters["GOPS"] = benchmark::Counter(
      iterations * 2e-9 * static_cast<double>(rows * kCols * tokens),
      benchmark::Counter::kIsRate);
}

// What a decode step is measured against.
void ReadMemory(benchmark::State& state) {
  AlignedBytes bytes(kStreamedBytes);
  std::memset(bytes.data(), 1, static_cast<size_t>(kStreamedBytes));
  for (auto _ : state) {
    uint64_t sums[16] = {};
    for (int64_t at = 0; at < kStreamedBytes; at += sizeof(sums)) {
      uint64_t values[16];
      std::memcpy(values, bytes.data() + at, sizeof(values));
      for (int i = 0; i < 16; ++i) {
        sums[i] += values[i];
      }
    }
    benchmark::DoNotOptimize(sums);
  }
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 1e-9 *
                             static_cast<double>(kStreamedBytes),
                         benchmark::Counter::kIsRate);
}

void Register(const Version& version) {
  const std::string name =
      std::string(version.kernels->name) +
      (version.mode == ComputeMode::kFast ? "/fast/" : "/exact/") +
      TraitsOf(version.format).name;
  // The scalar versions are too slow for sizes that tell something of others.
  const bool scalar = version.kernels->isa == Isa::kScalar;
  const int64_t streamed =
      scalar ? 4 : kStreamedBytes / TileBytes(version.format, kCols);
  const int64_t prompt_tiles = scalar ? 1 : kPromptRows / kTileRows;
  const int64_t prompt_tokens = scalar ? 16 : kPromptTokens;
  benchmark::RegisterBenchmark(("decode/" + name).c_str(),
                               [version, streamed](benchmark::State& state) {
                                 MatMul(state, version, streamed, 1);
                               })
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(
      ("prefill/" + name).c_str(),
      [version, prompt_tiles, prompt_tokens](benchmark::State& state) {
        MatMul(state, version, prompt_tiles, prompt_tokens);
      })
      ->Unit(benchmark::kMillisecond);
}

void RegisterAll() {
  benchmark::RegisterBenchmark("read_memory", ReadMemory)
      ->Unit(benchmark::kMillisecond);
  KernelTable before;
  for (const KernelVersion& kernels : KernelVersions()) {
    if (!kernels.host_supports()) {
      continue;
    }
    const KernelTable table = TableOf(kernels);
    for (const ComputeMode mode : {ComputeMode::kFast, ComputeMode::kExact}) {
      for (int format = 0; format < kNumWeightFormats; ++format) {
        const int index = static_cast<int>(mode);
        if (table.matmul[index][format] != before.matmul[index][format]) {
          Register({&kernels, mode, static_cast<WeightFormat>(format)});
        }
      }
    }
    before = table;
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
