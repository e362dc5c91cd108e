#include "kernels/matmul/matmul_scalar.h"

#include <utility>

#include "kernels/kernel_table.h"
#include "kernels/matmul/matmul_versions.h"

namespace millrace::kernels {
namespace {

const TileVersions& VersionsFor(ComputeMode mode, WeightFormat format) {
  if (format == WeightFormat::kFp8) {
    return mode == ComputeMode::kExact ? kExactFp8Tile : kFastFp8Tile;
  }
  if (mode == ComputeMode::kExact || format == WeightFormat::kF32 ||
      format == WeightFormat::kF16) {
    return kExactTile;
  }
  return format == WeightFormat::kBf16 ? kFastBf16Tile : kFastQuantTile;
}

void StoreSums(const MatMulArgs& args, int64_t tile, int64_t token_begin,
               int tokens, const TileSums& sums) {
  for (int t = 0; t < tokens; ++t) {
    float* y = args.y + (token_begin + t) * args.y_stride;
    for (int row = 0; row < kTileRows; ++row) {
      const int64_t o = tile * kTileRows + row;
      if (o < args.rows) {
        y[o] =
            args.bias == nullptr ? sums[t][row] : sums[t][row] + args.bias[o];
      }
    }
  }
}

template <ComputeMode kMode, WeightFormat kFormat, bool kFused>
void MatMulScalar(const MatMulArgs& args, int64_t tile_begin,
                  int64_t tile_end) {
  const TileVersions& versions = VersionsFor(kMode, kFormat);
  const TileFn tile_fn = kFused ? versions.fused : versions.plain;
  const int64_t tile_bytes = TileBytes(kFormat, args.cols);
  const int64_t panels = NumPanels(args.num_tokens);
  for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int64_t begin = PanelBegin(args.num_tokens, panel);
      const int tokens =
          static_cast<int>(PanelBegin(args.num_tokens, panel + 1) - begin);
      const std::byte* packed =
          args.packed +
          begin *
              PackedTokenBytes(ActivationFormFor(kMode, kFormat), args.cols);
      TileSums sums = {};
      tile_fn(kFormat, args.tiles + tile * tile_bytes, args.cols, packed,
              tokens, sums);
      StoreSums(args, tile, begin, tokens, sums);
    }
  }
}

template <WeightFormat kFormat>
void AddFormat(KernelTable& table, bool fused) {
  constexpr int kIndex = static_cast<int>(kFormat);
  constexpr int kFast = static_cast<int>(ComputeMode::kFast);
  constexpr int kExact = static_cast<int>(ComputeMode::kExact);
  constexpr ComputeMode kFastMode = ComputeMode::kFast;
  constexpr ComputeMode kExactMode = ComputeMode::kExact;
  table.matmul[kFast][kIndex] = fused ? MatMulScalar<kFastMode, kFormat, true>
                                      : MatMulScalar<kFastMode, kFormat, false>;
  table.matmul[kExact][kIndex] = fused
                                     ? MatMulScalar<kExactMode, kFormat, true>
                                     : MatMulScalar<kExactMode, kFormat, false>;
}

template <int... kFormats>
void AddFormats(KernelTable& table, bool fused,
                std::integer_sequence<int, kFormats...>) {
  (AddFormat<static_cast<WeightFormat>(kFormats)>(table, fused), ...);
}

}  // namespace

bool HostHasFusedStep() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 &&
         __builtin_cpu_supports("fma") != 0;
#else
  return true;
#endif
}

void AddScalarMatMul(KernelTable& table) {
  AddScalarMatMul(table, HostHasFusedStep());
}

void AddScalarMatMul(KernelTable& table, bool fused_instruction) {
  AddFormats(table, fused_instruction,
             std::make_integer_sequence<int, kNumWeightFormats>());
  PackActivationsFn* pack = table.pack_activations;
  pack[static_cast<int>(ActivationForm::kF32)] = PackF32Scalar;
  pack[static_cast<int>(ActivationForm::kBf16)] = PackBf16Scalar;
  pack[static_cast<int>(ActivationForm::kInt8)] = PackInt8Scalar;
}

}  // namespace millrace::kernels
