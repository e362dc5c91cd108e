#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/tile_walk.h"
#include "kernels/matmul/token_block.h"

// The loops around products whose weights are decoded once for many tokens. See
// tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// Some columns of tiles, decoded, against a panel.
struct ExpandedArgs {
  const std::byte* weights;  // of each tile, Decoder::kBytes apart
  int64_t num_tiles;         // at most Decoder::kTiles
  int64_t columns;
  const std::byte* activations;  // of the panel, for the first of the columns
  int64_t tokens;
  // Of the next panel, the same columns; of the last one the first's.
  const std::byte* next_activations;
  // [tile][kPanelTokens][16 rows], in and out, 64-byte aligned.
  float* sums;
};

// Blocks of panels that stay in the second-level cache, tiles, decoded columns,
// panels. Decoder says
//   kFormat, kForm   of the product
//   kTiles           taken side by side
//   kColumns         decoded at a time
//   kBytes           which those of a tile take; kTiles of them are a share of
//                    the first-level cache
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
    int64_t block = TokenBlockBytes() / (kPanelTokens * token_bytes_);
    block = block < 1 ? 1 : block > kMaxPanels ? kMaxPanels : block;
    for (int64_t first = 0; first < panels; first += block) {
      num_panels_ = first + block < panels ? block : panels - first;
      for (int64_t p = 0; p <= num_panels_; ++p) {
        begins_[p] = PanelBegin(args_.num_tokens, first + p);
      }
      for (int64_t tile = tile_begin; tile < tile_end;
           tile += Decoder::kTiles) {
        const int64_t left = tile_end - tile;
        RunTiles(tile, left < Decoder::kTiles ? left : Decoder::kTiles);
      }
    }
    decoder_.Finish();
  }

 private:
  static constexpr int64_t kMaxPanels = 32;

  static constexpr int64_t kSumsOfTile = kPanelTokens * kTileRows;

  void RunTiles(int64_t tile, int64_t num_tiles) {
    ClearSums();
    for (int64_t begin = 0; begin < args_.cols; begin += Decoder::kColumns) {
      const int64_t left = args_.cols - begin;
      const int64_t columns =
          left < Decoder::kColumns ? left : Decoder::kColumns;
      for (int64_t i = 0; i < num_tiles; ++i) {
        Decoder::Expand(args_.tiles + (tile + i) * tile_bytes_, args_.cols,
                        begin, begin + columns, expanded_[i]);
      }
      for (int64_t p = 0; p < num_panels_; ++p) {
        decoder_.Add({.weights = expanded_[0],
                      .num_tiles = num_tiles,
                      .columns = columns,
                      .activations = ActivationsOf(p, begin),
                      .tokens = TokensOf(p),
                      .next_activations =
                          ActivationsOf(p + 1 < num_panels_ ? p + 1 : 0, begin),
                      .sums = sums_[p]});
      }
    }
    for (int64_t p = 0; p < num_panels_; ++p) {
      for (int64_t i = 0; i < num_tiles; ++i) {
        StoreSums(tile + i, p, sums_[p] + i * kSumsOfTile);
      }
    }
  }

  [[nodiscard]] int64_t TokensOf(int64_t panel) const {
    return begins_[panel + 1] - begins_[panel];
  }

  [[nodiscard]] const std::byte* ActivationsOf(int64_t panel,
                                               int64_t column) const {
    return args_.packed + begins_[panel] * token_bytes_ +
           Decoder::Offset(column, TokensOf(panel));
  }

  void ClearSums() {
    float* sums = sums_[0];
    const int64_t num = num_panels_ * Decoder::kTiles * kSumsOfTile;
    for (int64_t i = 0; i < num; i += kTileRows) {
      _mm512_store_ps(sums + i, _mm512_setzero_ps());
    }
  }

  void StoreSums(int64_t tile, int64_t panel, const float* sums) {
    const int64_t left = args_.rows - tile * kTileRows;
    const __mmask16 rows =
        static_cast<__mmask16>(left < kTileRows ? (1 << left) - 1 : 0xffff);
    const float* bias =
        args_.bias == nullptr ? nullptr : args_.bias + tile * kTileRows;
    float* y = args_.y + tile * kTileRows;
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
  alignas(64) std::byte expanded_[Decoder::kTiles][Decoder::kBytes];
  alignas(64) float sums_[kMaxPanels][Decoder::kTiles * kSumsOfTile];
};

}  // namespace
}  // namespace millrace::kernels
