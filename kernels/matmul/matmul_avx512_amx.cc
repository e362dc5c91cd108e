#include <utility>

#include "kernels/kernel_table.h"
#include "kernels/matmul/amx_panel.h"
#include "kernels/matmul/matmul_avx512.h"
#include "kernels/matmul/tile_walk.h"

namespace millrace::kernels {
namespace {

// With fewer tokens the byte dot instruction is as fast.
constexpr int64_t kFewestTokens = 5;

// Groups that are expanded at a time, a multiple of those of a record: with
// their scales 40 KiB at most, which the first-level cache holds.
constexpr int64_t kGroupsAtATime = 64;
constexpr int64_t kMaxExpandedBytes =
    kGroupsAtATime * ExpandedGroupBytes(ProductRule::kTwoHalves);

// Panels whose sums a walk keeps.
constexpr int64_t kMaxPanels = 32;

using AmxPanelFn = void (*)(const AmxArgs& args);

template <ProductRule kRule, bool kUnsigned, int... kTokens>
AmxPanelFn PanelOf(int64_t tokens, std::integer_sequence<int, kTokens...>) {
  static constexpr AmxPanelFn kPanels[] = {
      AmxPanel<kRule, kUnsigned, kTokens + 1>...};
  return kPanels[tokens - 1];
}

// The loops around a product: blocks of panels that stay in the second-level
// cache, tiles, expanded groups, panels.
template <WeightFormat kFormat>
class AmxWalk {
 public:
  explicit AmxWalk(const MatMulArgs& args) : args_(args) {}

  void Run(int64_t tile_begin, int64_t tile_end) {
    const int64_t panels = NumPanels(args_.num_tokens);
    const int64_t panel_bytes = kPanelTokens * token_bytes_;
    int64_t block = kTokenBlockBytes / panel_bytes;
    block = block < 1 ? 1 : block > kMaxPanels ? kMaxPanels : block;
    for (int64_t first = 0; first < panels; first += block) {
      num_panels_ = first + block < panels ? block : panels - first;
      for (int64_t p = 0; p <= num_panels_; ++p) {
        begins_[p] = PanelBegin(args_.num_tokens, first + p);
      }
      for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
        RunTile(tile);
      }
    }
    _tile_release();
  }

 private:
  static constexpr TileLayout kLayout = LayoutOf(kFormat);

  void RunTile(int64_t tile) {
    const int64_t groups = args_.cols / kGroup;
    const std::byte* bytes = args_.tiles + tile * tile_bytes_;
    ClearSums();
    for (int64_t begin = 0; begin < groups; begin += kGroupsAtATime) {
      const int64_t left = groups - begin;
      const int64_t num = left < kGroupsAtATime ? left : kGroupsAtATime;
      ExpandGroups<kFormat>(bytes, args_.cols, begin, begin + num, expanded_);
      for (int64_t p = 0; p < num_panels_; ++p) {
        AddGroups(begin, num, p);
      }
    }
    for (int64_t p = 0; p < num_panels_; ++p) {
      StoreSums(tile, p);
    }
  }

  void ClearSums() {
    float* sums = sums_[0];
    for (int64_t i = 0; i < num_panels_ * kPanelTokens; ++i) {
      _mm512_store_ps(sums + i * kTileRows, _mm512_setzero_ps());
    }
  }

  void AddGroups(int64_t begin, int64_t num, int64_t panel) {
    const int64_t tokens = begins_[panel + 1] - begins_[panel];
    if (tokens != configured_) {
      Configure(tokens, HasHalves(kLayout));
      configured_ = tokens;
    }
    const int64_t step =
        tokens * static_cast<int64_t>(sizeof(ActivationRecord));
    PanelOf<kLayout.rule, HasUnsignedValues(kLayout)>(
        tokens, std::make_integer_sequence<int, kPanelTokens>())(
        {.groups = expanded_,
         .num_groups = num,
         .records = args_.packed + begins_[panel] * token_bytes_ + begin * step,
         .step = step,
         .sums = sums_[panel]});
  }

  void StoreSums(int64_t tile, int64_t panel) {
    const int64_t left = args_.rows - tile * kTileRows;
    const __mmask16 rows =
        static_cast<__mmask16>(left < kTileRows ? (1 << left) - 1 : 0xffff);
    const float* bias =
        args_.bias == nullptr ? nullptr : args_.bias + tile * kTileRows;
    float* y = args_.y + tile * kTileRows;
    const float* sums = sums_[panel];
    for (int64_t t = begins_[panel]; t < begins_[panel + 1]; ++t) {
      __m512 sum = _mm512_load_ps(sums);
      if (bias != nullptr) {
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(rows, bias));
      }
      _mm512_mask_storeu_ps(y + t * args_.y_stride, rows, sum);
      sums += kTileRows;
    }
  }

  const MatMulArgs& args_;
  const int64_t token_bytes_ =
      PackedTokenBytes(ActivationForm::kInt8, args_.cols);
  const int64_t tile_bytes_ = TileBytes(kFormat, args_.cols);
  int64_t num_panels_ = 0;          // of the block
  int64_t begins_[kMaxPanels + 1];  // their first tokens
  int64_t configured_ = 0;  // tokens that the tile registers are set up for
  alignas(64) std::byte expanded_[kMaxExpandedBytes];
  alignas(64) float sums_[kMaxPanels][kPanelTokens * kTileRows];
};

template <WeightFormat kFormat, const MatMulPair& kFew>
void MatMulAmx(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens < kFewestTokens) {
    kFew.fast(args, tile_begin, tile_end);
    return;
  }
  AmxWalk<kFormat>(args).Run(tile_begin, tile_end);
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
