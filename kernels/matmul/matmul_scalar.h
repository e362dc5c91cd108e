#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/compute_mode.h"
#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quant/tile.h"
#include "kernels/quant/weight_format.h"

// What a function that may use the fused instruction is compiled for.
#if defined(__x86_64__)
#define MILLRACE_FUSED_TARGET __attribute__((target("avx2,fma")))
#else
#define MILLRACE_FUSED_TARGET
#endif

// The scalar versions: the definition of every product.
namespace millrace::kernels {

struct KernelTable;

void PackF32Scalar(const PackActivationsArgs& args, int64_t panel_begin,
                   int64_t panel_end);
void PackBf16Scalar(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end);
void PackInt8Scalar(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end);

// Sums of one tile and one panel, [token][row of the tile].
using TileSums = float[kMaxPanelTokens][kTileRows];

// Add w * x over all cols to `sums`, which start at +0. `panel` is the packed
// panel of `tokens` tokens.
using TileFn = void (*)(WeightFormat format, const std::byte* tile,
                        int64_t cols, const std::byte* panel, int tokens,
                        TileSums& sums);

// Each stands twice, compiled from one body: for every processor, where a fused
// step is a call of the C library, and for those with the instruction, several
// times as fast. A fused step is defined exactly, so the results are equal.
struct TileVersions {
  TileFn plain;
  TileFn fused;  // HostHasFusedStep()
};
extern const TileVersions kExactTile;
extern const TileVersions kFastBf16Tile;
extern const TileVersions kFastQuantTile;
extern const TileVersions kExactFp8Tile;
extern const TileVersions kFastFp8Tile;
bool HostHasFusedStep();

// The scalar products from one of the two.
void AddScalarMatMul(KernelTable& table, bool fused_instruction);

}  // namespace millrace::kernels
