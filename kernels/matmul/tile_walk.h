#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/token_block.h"
#include "kernels/quant/tile.h"

// The loops around every vector version. Included by files that are compiled
// for one instruction set each, hence the unnamed namespace: an inline function
// with a name would be emitted as a weak symbol, and the linker could give its
// AVX code to the whole program.
namespace millrace::kernels {
namespace {

constexpr int kPanelTokens = 16;

// Tiles that a kernel may take side by side for few tokens, where the chain of
// fused steps of one tile would be waited for.
constexpr int kMaxSideTiles = 4;

struct PanelArgs {
  const std::byte* tile;  // the first of the tiles taken side by side
  int64_t tile_bytes;
  int64_t cols;
  const std::byte* panel;
  int64_t tokens;  // of the panel: the stride between groups or columns
  float* sums;     // [tile][kPanelTokens][kTileRows], out
};
using PanelFn = void (*)(const PanelArgs& args);

void StoreRows(const MatMulArgs& args, int64_t tile, int64_t token,
               const float* sums) {
  float* y = args.y + token * args.y_stride + tile * kTileRows;
  const int64_t left = args.rows - tile * kTileRows;
  const int64_t num = left < kTileRows ? left : kTileRows;
  if (args.bias == nullptr) {
    for (int64_t row = 0; row < num; ++row) {
      y[row] = sums[row];
    }
    return;
  }
  const float* bias = args.bias + tile * kTileRows;
  for (int64_t row = 0; row < num; ++row) {
    y[row] = sums[row] + bias[row];
  }
}

// One panel against `num_tiles` tiles from `tile` on.
template <typename Kernel>
void RunPanel(const MatMulArgs& args, int64_t tile, int num_tiles,
              int64_t panel) {
  alignas(64) float sums[kMaxSideTiles * kPanelTokens * kTileRows];
  const int64_t begin = PanelBegin(args.num_tokens, panel);
  const int64_t tokens = PanelBegin(args.num_tokens, panel + 1) - begin;
  const int64_t tile_bytes = TileBytes(Kernel::kFormat, args.cols);
  const PanelArgs panel_args = {
      .tile = args.tiles + tile * tile_bytes,
      .tile_bytes = tile_bytes,
      .cols = args.cols,
      .panel = args.packed + begin * PackedTokenBytes(Kernel::kForm, args.cols),
      .tokens = tokens,
      .sums = sums,
  };
  Kernel::Choose(tokens, num_tiles)(panel_args);
  for (int side = 0; side < num_tiles; ++side) {
    for (int64_t t = 0; t < tokens; ++t) {
      StoreRows(args, tile + side, begin + t,
                sums + (side * kPanelTokens + t) * kTileRows);
    }
  }
}

// Kernel has kFormat, kForm, SideTiles(tokens): tiles it takes side by side,
// and Choose(tokens, num_tiles): its function for such a panel.
template <typename Kernel>
void MatMulTiles(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  const int64_t panels = NumPanels(args.num_tokens);
  const int64_t panel_bytes =
      kPanelTokens * PackedTokenBytes(Kernel::kForm, args.cols);
  const int64_t fitting = TokenBlockBytes() / panel_bytes;
  const int64_t block = fitting < 1 ? 1 : fitting;
  const int side = panels == 1 ? Kernel::SideTiles(args.num_tokens) : 1;
  for (int64_t first = 0; first < panels; first += block) {
    const int64_t last = first + block < panels ? first + block : panels;
    int64_t tile = tile_begin;
    while (tile < tile_end) {
      const int num = tile_end - tile >= side ? side : 1;
      for (int64_t panel = first; panel < last; ++panel) {
        RunPanel<Kernel>(args, tile, num, panel);
      }
      tile += num;
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
