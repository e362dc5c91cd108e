#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/tile_walk.h"

// The loops around products whose weights are decoded once for many tokens. See
// tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// Some columns of a tile, decoded, against a panel.
struct ExpandedArgs {
  const std::byte* weights;
  int64_t columns;
  const std::byte* activations;  // of the panel, for the first of the columns
  int64_t tokens;
  float* sums;  // [tokens][16 rows], in and out, 64-byte aligned
};

// Blocks of panels that stay in the second-level cache, tiles, decoded columns,
// panels. Decoder says
//   kFormat, kForm   of the product
//   kColumns         decoded at a time
//   kBytes           which they take; a share of the first-level cache
//   Expand(tile, cols, begin, end, out)   writes the columns [begin, end)
//   Offset(column, tokens)                of a column's activations in a panel
//   Add(args)                             an ExpandedArgs
//   Finish()                              of a call
template <typename Decoder>
class ExpandedWalk {
 public:
  explicit ExpandedWalk(const MatMulArgs& args) : args_(args) {}

  void Run(int64_t tile_begin, int64_t tile_end) {
    const int64_t panels = NumPanels(args_.num_tokens);
    int64_t block = kTokenBlockBytes / (kPanelTokens * token_bytes_);
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
    decoder_.Finish();
  }

 private:
  static constexpr int64_t kMaxPanels = 32;

  void RunTile(int64_t tile) {
    ClearSums();
    const std::byte* from = args_.tiles + tile * tile_bytes_;
    for (int64_t begin = 0; begin < args_.cols; begin += Decoder::kColumns) {
      const int64_t left = args_.cols - begin;
      const int64_t columns =
          left < Decoder::kColumns ? left : Decoder::kColumns;
      Decoder::Expand(from, args_.cols, begin, begin + columns, expanded_);
      for (int64_t p = 0; p < num_panels_; ++p) {
        const int64_t tokens = begins_[p + 1] - begins_[p];
        decoder_.Add({.weights = expanded_,
                      .columns = columns,
                      .activations = args_.packed + begins_[p] * token_bytes_ +
                                     Decoder::Offset(begin, tokens),
                      .tokens = tokens,
                      .sums = sums_[p]});
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
  const int64_t token_bytes_ = PackedTokenBytes(Decoder::kForm, args_.cols);
  const int64_t tile_bytes_ = TileBytes(Decoder::kFormat, args_.cols);
  Decoder decoder_;
  int64_t num_panels_ = 0;          // of the block
  int64_t begins_[kMaxPanels + 1];  // their first tokens
  alignas(64) std::byte expanded_[Decoder::kBytes];
  alignas(64) float sums_[kMaxPanels][kPanelTokens * kTileRows];
};

}  // namespace
}  // namespace millrace::kernels
