#include <utility>

#include "kernels/kernel_table.h"
#include "kernels/matmul/amx_panel.h"
#include "kernels/matmul/asks_ahead.h"
#include "kernels/matmul/expanded_walk.h"
#include "kernels/matmul/matmul_avx512.h"
#include "kernels/matmul/rows_avx512.h"

namespace millrace::kernels {
namespace {

// With fewer tokens the byte dot instruction is as fast.
constexpr int64_t kFewestExpanded = 5;

using AmxPanelFn = void (*)(const AmxArgs& args);

template <ProductRule kRule, bool kUnsigned, bool kPlaces, int... kTokens>
AmxPanelFn PanelOf(int64_t tokens, std::integer_sequence<int, kTokens...>) {
  static constexpr AmxPanelFn kPanels[] = {
      AmxPanel<kRule, kUnsigned, kPlaces, kTokens + 1>...};
  return kPanels[tokens - 1];
}

// For ExpandedWalk.
template <WeightFormat kWeights>
class AmxDecoder {
 public:
  using Rows = Rows512;
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kInt8;
  static constexpr int64_t kTiles = 1;
  // With their scales 40 KiB at most.
  static constexpr int64_t kColumns = 64 * kGroup;
  static constexpr int64_t kBytes =
      kColumns / kGroup * ExpandedGroupBytes(LayoutOf(kWeights).rule);

  static void Expand(const std::byte* tile, int64_t cols, int64_t begin,
                     int64_t end, std::byte* out) {
    ExpandGroups<kFormat>(tile, cols, begin / kGroup, end / kGroup, out);
  }
  static int64_t Offset(int64_t column, int64_t tokens) {
    return column / kGroup * Step(tokens);
  }
  static constexpr int64_t kStepColumns = kGroup;
  static bool Asks() { return AsksAhead(); }
  static int64_t PartsAhead(int64_t, int64_t) { return 1; }
  int64_t Add(const ExpandedArgs& args) {
    if (args.tokens != configured_) {
      Configure(args.tokens, HasHalves(kLayout));
      configured_ = args.tokens;
    }
    const AmxArgs panel = {.groups = args.weights,
                           .num_groups = args.columns / kGroup,
                           .records = args.activations,
                           .step = Step(args.tokens),
                           .sums = args.sums,
                           .ahead = args.ahead};
    if constexpr (kLayout.code_bits == 8) {
      if (args.ahead.step >= kPlacesStep) {
        Panel<true>(args.tokens)(panel);
        return args.ahead.bytes;
      }
    }
    Panel<false>(args.tokens)(panel);
    return AheadOfWeights::kPlaces * args.ahead.bytes;
  }
  static void Finish() { _tile_release(); }

 private:
  static constexpr TileLayout kLayout = LayoutOf(kFormat);

  // Bytes a group from which memory has too little time if it is asked in
  // order: bytes of a single panel (Q8_0 of 6 tokens 1.2). Below, asking place
  // by place costs more than it gains (0.95).
  static constexpr int64_t kPlacesStep = 128;

  template <bool kPlaces>
  static AmxPanelFn Panel(int64_t tokens) {
    return PanelOf<kLayout.rule, HasUnsignedValues(kLayout), kPlaces>(
        tokens, std::make_integer_sequence<int, kPanelTokens>());
  }

  static int64_t Step(int64_t tokens) {
    return tokens * static_cast<int64_t>(sizeof(ActivationRecord));
  }

  int64_t configured_ = 0;  // tokens that the tile registers are set up for
};

template <WeightFormat kFormat, const MatMulPair& kFew>
void MatMulAmx(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens < kFewestExpanded) {
    kFew.fast(args, tile_begin, tile_end);
    return;
  }
  ExpandedWalk<AmxDecoder<kFormat>>(args).Run(tile_begin, tile_end);
}

}  // namespace

// Not Q2_K: two scales and two minima a group leave the vector units as busy as
// with the byte dot instruction (0.88 of its speed).
void AddAmxMatMul(KernelTable& table) {
  MatMulFn* fast = table.matmul[static_cast<int>(ComputeMode::kFast)];
  const auto add = [fast](WeightFormat format, MatMulFn function) {
    fast[static_cast<int>(format)] = function;
  };
  using enum WeightFormat;
  add(kQ4_0, MatMulAmx<kQ4_0, kMatMulAvx512Q40>);
  add(kQ4_1, MatMulAmx<kQ4_1, kMatMulAvx512Q41>);
  add(kQ5_0, MatMulAmx<kQ5_0, kMatMulAvx512Q50>);
  add(kQ5_1, MatMulAmx<kQ5_1, kMatMulAvx512Q51>);
  add(kQ8_0, MatMulAmx<kQ8_0, kMatMulAvx512Q80>);
  add(kQ3_K, MatMulAmx<kQ3_K, kMatMulAvx512Q3K>);
  add(kQ4_K, MatMulAmx<kQ4_K, kMatMulAvx512Q4K>);
  add(kQ5_K, MatMulAmx<kQ5_K, kMatMulAvx512Q5K>);
  add(kQ6_K, MatMulAmx<kQ6_K, kMatMulAvx512Q6K>);
  add(kIq4Nl, MatMulAmx<kIq4Nl, kMatMulAvx512Iq4Nl>);
  add(kMxfp4, MatMulAmx<kMxfp4, kMatMulAvx512Mxfp4>);
  add(kInt4, MatMulAmx<kInt4, kMatMulAvx512Int4>);
  add(kInt4F16, MatMulAmx<kInt4F16, kMatMulAvx512Int4F16>);
  add(kInt4Zero, MatMulAmx<kInt4Zero, kMatMulAvx512Int4Zero>);
  add(kInt4ZeroF16, MatMulAmx<kInt4ZeroF16, kMatMulAvx512Int4ZeroF16>);
  add(kMlx4, MatMulAmx<kMlx4, kMatMulAvx512Mlx4>);
  add(kMlx4F16, MatMulAmx<kMlx4F16, kMatMulAvx512Mlx4F16>);
  add(kMlx8, MatMulAmx<kMlx8, kMatMulAvx512Mlx8>);
  add(kMlx8F16, MatMulAmx<kMlx8F16, kMatMulAvx512Mlx8F16>);
}

}  // namespace millrace::kernels
