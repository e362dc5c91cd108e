#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/tile_walk.h"
#include "kernels/matmul/token_block.h"

// The loops around products whose weights are decoded once for many tokens. See
// tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// Weights that are expanded next, from several places in turn (prefetch.h): of
// each of the tiles side by side, or the quarters of one.
struct AheadOfWeights {
  static constexpr int kPlaces = 4;  // at most, and of one tile
  const std::byte* from;             // of the first place
  int64_t apart;                     // from place to place
  int64_t bytes;                     // of a place for a part of a panel
  int64_t step;                      // for Decoder::kStepColumns of them
};

// Some columns of tiles, decoded, against a panel.
struct ExpandedArgs {
  const std::byte* weights;  // of each tile, Decoder::kBytes apart
  int64_t num_tiles;         // at most Decoder::kTiles
  int64_t columns;
  const std::byte* activations;  // of the panel, for the first of the columns
  int64_t tokens;
  // [tile][kPanelTokens][16 rows], in and out, 64-byte aligned.
  float* sums;
  // What to ask for in passing. Of the next panel, the same columns and the
  // sums; of the last one the first's. Null where they are at hand.
  const std::byte* next_activations;
  const float* next_sums;
  // And of the weights that are expanded next a share for each part of a panel.
  // Advice: nothing may be there.
  AheadOfWeights ahead;
};

// Blocks of panels, columns of them that stay in the second-level cache, tiles,
// decoded columns, panels. Decoder says
//   kFormat, kForm   of the product
//   Rows             rows_avx512.h, rows_avx2.h: how sums are put aside
//   kTiles           taken side by side
//   kColumns         decoded at a time
//   kBytes           which those of a tile take; kTiles of them are a share of
//                    the first-level cache
//   Expand(tile, cols, begin, end, out)   writes the columns [begin, end)
//   Offset(column, tokens)                of a column's activations in a panel
//   Add(args)                             an ExpandedArgs; returns how far it
//                                         asked ahead
//   kStepColumns                          of AheadOfWeights
//   Asks()                                whether it asks for weights at all
//   PartsAhead(tokens, jobs)              parts of a panel that do, beside so
//                                         many other jobs
//   Finish()                              of a call
template <typename Decoder>
class ExpandedWalk {
  using Rows = typename Decoder::Rows;

 public:
  explicit ExpandedWalk(const MatMulArgs& args) : args_(args) {}

  void Run(int64_t tile_begin, int64_t tile_end) {
    const int64_t panels = NumPanels(args_.num_tokens);
    for (int64_t first = 0; first < panels; first += kBlockPanels) {
      const int64_t left = panels - first;
      num_panels_ = left < kBlockPanels ? left : kBlockPanels;
      for (int64_t p = 0; p <= num_panels_; ++p) {
        begins_[p] = PanelBegin(args_.num_tokens, first + p);
      }
      ShareAhead();
      RunBlock(tile_begin, tile_end);
    }
    decoder_.Finish();
  }

 private:
  // Panels of a block at most: weights are decoded once for them, which then
  // takes 2 % of the time of exact products, and their sums for four tiles are
  // 64 KiB.
  static constexpr int64_t kBlockPanels = 16;
  static constexpr int64_t kFewPanels = 4;

  static constexpr int64_t kSumsOfTile = kPanelTokens * kTileRows;
  static constexpr int64_t kSumsOfPanel = Decoder::kTiles * kSumsOfTile;

  void RunBlock(int64_t tile_begin, int64_t tile_end) {
    const int64_t columns = ColumnsOfBlock();
    for (int64_t begin = 0; begin < args_.cols; begin += columns) {
      const int64_t end =
          begin + columns < args_.cols ? begin + columns : args_.cols;
      for (int64_t tile = tile_begin; tile < tile_end;
           tile += Decoder::kTiles) {
        const int64_t left = tile_end - tile;
        RunTiles(tile, left < Decoder::kTiles ? left : Decoder::kTiles, begin,
                 end);
      }
    }
  }

  // Columns of the block's panels that stay in the second-level cache while
  // tiles pass: nearly equal cuts, whole decoded blocks each.
  [[nodiscard]] int64_t ColumnsOfBlock() const {
    const int64_t bytes = (begins_[num_panels_] - begins_[0]) * token_bytes_;
    const int64_t cuts = (bytes + TokenBlockBytes() - 1) / TokenBlockBytes();
    const int64_t columns = (args_.cols + cuts - 1) / cuts;
    return (columns + Decoder::kColumns - 1) / Decoder::kColumns *
           Decoder::kColumns;
  }

  // Sums of a tile's columns before `begin` stand in y.
  void RunTiles(int64_t tile, int64_t num_tiles, int64_t begin, int64_t end) {
    const int64_t first = begin;
    if (begin == 0) {
      ClearSums();
    } else {
      LoadSums(tile, num_tiles);
    }
    for (; begin < end; begin += Decoder::kColumns) {
      const int64_t left = end - begin;
      const int64_t columns =
          left < Decoder::kColumns ? left : Decoder::kColumns;
      for (int64_t i = 0; i < num_tiles; ++i) {
        Decoder::Expand(args_.tiles + (tile + i) * tile_bytes_, args_.cols,
                        begin, begin + columns, expanded_[i]);
      }
      AheadOfWeights ahead = left > Decoder::kColumns
                                 ? AheadOf(tile, begin + columns)
                                 : AheadOf(tile + num_tiles, first);
      for (int64_t p = 0; p < num_panels_; ++p) {
        if (left <= Decoder::kColumns) {
          // Stores to the first, loads from the others come next.
          AskForResults(first == 0 ? tile : tile + num_tiles, num_tiles, p);
        }
        const int64_t next = p + 1 < num_panels_ ? p + 1 : 0;
        ahead.from += decoder_.Add(
            {.weights = expanded_[0],
             .num_tiles = num_tiles,
             .columns = columns,
             .activations = ActivationsOf(p, begin),
             .tokens = TokensOf(p),
             .sums = sums_[p],
             .next_activations =
                 asks_activations() ? ActivationsOf(next, begin) : nullptr,
             .next_sums = asks_sums() ? sums_[next] : nullptr,
             .ahead = ahead});
      }
    }
    const float* bias = end == args_.cols ? args_.bias : nullptr;
    for (int64_t p = 0; p < num_panels_; ++p) {
      for (int64_t i = 0; i < num_tiles; ++i) {
        StoreSums(tile + i, p, bias, sums_[p] + i * kSumsOfTile);
      }
    }
  }

  // Shares what the expansion of kColumns reads among the parts of the block's
  // panels.
  void ShareAhead() {
    int64_t parts = 0;
    for (int64_t p = 0; p < num_panels_; ++p) {
      parts +=
          Decoder::PartsAhead(TokensOf(p), asks_activations() + asks_sums());
    }
    const int64_t columns =
        args_.cols < Decoder::kColumns ? args_.cols : Decoder::kColumns;
    expanded_bytes_ = tile_bytes_ * columns / args_.cols;
    const int64_t of_place = Decoder::kTiles == 1
                                 ? expanded_bytes_ / AheadOfWeights::kPlaces
                                 : expanded_bytes_;
    part_bytes_ = parts == 0 || !Decoder::Asks() ? 0 : of_place / parts;
    step_bytes_ = part_bytes_ * Decoder::kStepColumns / columns;
  }

  // Of the columns from `column` on: about where their codes are, since scales
  // of some formats stand elsewhere. Nothing behind the matrix.
  [[nodiscard]] AheadOfWeights AheadOf(int64_t tile, int64_t column) const {
    if (tile >= NumTiles(args_.rows)) {
      return {.from = args_.tiles, .apart = 0, .bytes = 0, .step = 0};
    }
    return {.from = args_.tiles + tile * tile_bytes_ +
                    column / Decoder::kColumns * expanded_bytes_,
            .apart = Decoder::kTiles == 1
                         ? expanded_bytes_ / AheadOfWeights::kPlaces
                         : tile_bytes_,
            .bytes = part_bytes_,
            .step = step_bytes_};
  }

  // A panel's activations and sums stay in the first-level cache where panels
  // are so few.
  [[nodiscard]] bool asks_activations() const { return num_panels_ > 1; }
  [[nodiscard]] bool asks_sums() const { return num_panels_ > kFewPanels; }

  [[nodiscard]] int64_t TokensOf(int64_t panel) const {
    return begins_[panel + 1] - begins_[panel];
  }

  [[nodiscard]] const std::byte* ActivationsOf(int64_t panel,
                                               int64_t column) const {
    return args_.packed + begins_[panel] * token_bytes_ +
           Decoder::Offset(column, TokensOf(panel));
  }

  [[nodiscard]] int64_t RowsOf(int64_t tile) const {
    const int64_t left = args_.rows - tile * kTileRows;
    return left < kTileRows ? left : kTileRows;
  }

  void ClearSums() {
    float* sums = sums_[0];
    for (int64_t i = 0; i < num_panels_ * kSumsOfPanel; i += kTileRows) {
      Rows::Clear(sums + i);
    }
  }

  void LoadSums(int64_t tile, int64_t num_tiles) {
    for (int64_t i = 0; i < num_tiles; ++i) {
      const int64_t rows = RowsOf(tile + i);
      const int64_t stride = args_.y_stride;
      for (int64_t p = 0; p < num_panels_; ++p) {
        const float* y = ResultsOf(tile + i, p);
        float* sums = sums_[p] + i * kSumsOfTile;
        for (int64_t t = TokensOf(p); t > 0; --t) {
          Rows::Load(y, rows, sums);
          sums += kTileRows;
          y += stride;
        }
      }
    }
  }

  // Results that are not at hand would hold up what follows. None behind the
  // last row.
  void AskForResults(int64_t tile, int64_t num_tiles, int64_t panel) const {
    if (tile >= NumTiles(args_.rows)) {
      return;
    }
    const int64_t stride = args_.y_stride;
    const float* y = ResultsOf(tile, panel);
    for (int64_t t = TokensOf(panel); t > 0; --t) {
      for (int64_t i = 0; i < num_tiles; ++i) {
        __builtin_prefetch(y + i * kTileRows, 1);
      }
      y += stride;
    }
  }

  void StoreSums(int64_t tile, int64_t panel, const float* bias,
                 const float* sums) {
    const int64_t rows = RowsOf(tile);
    const int64_t stride = args_.y_stride;
    const float* of_tile = bias == nullptr ? nullptr : bias + tile * kTileRows;
    float* y = ResultsOf(tile, panel);
    for (int64_t t = TokensOf(panel); t > 0; --t) {
      Rows::Store(sums, rows, of_tile, y);
      sums += kTileRows;
      y += stride;
    }
  }

  // Of the panel's first token.
  [[nodiscard]] float* ResultsOf(int64_t tile, int64_t panel) const {
    return args_.y + begins_[panel] * args_.y_stride + tile * kTileRows;
  }

  const MatMulArgs& args_;
  const int64_t token_bytes_ = PackedTokenBytes(Decoder::kForm, args_.cols);
  const int64_t tile_bytes_ = TileBytes(Decoder::kFormat, args_.cols);
  Decoder decoder_;
  int64_t num_panels_ = 0;            // of the block
  int64_t begins_[kBlockPanels + 1];  // their first tokens
  int64_t expanded_bytes_ = 0;        // of a tile that are expanded at a time
  int64_t part_bytes_ = 0;            // of AheadOfWeights
  int64_t step_bytes_ = 0;
  alignas(64) std::byte expanded_[Decoder::kTiles][Decoder::kBytes];
  alignas(64) float sums_[kBlockPanels][kSumsOfPanel];
};

}  // namespace
}  // namespace millrace::kernels
