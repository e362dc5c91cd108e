#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/compute_mode.h"
#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quant/tile.h"
#include "kernels/quant/weight_format.h"

// The scalar versions: the definition of every product.
namespace millrace::kernels {

void PackF32Scalar(const PackActivationsArgs& args, int64_t panel_begin,
                   int64_t panel_end);
void PackBf16Scalar(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end);
void PackInt8Scalar(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end);

// Sums of one tile and one panel, [token][row of the tile].
using TileSums = float[kMaxPanelTokens][kTileRows];

// The element functions: add w * x over all cols to `sums`, which start at +0.
// `panel` is the packed panel of `tokens` tokens.
void ExactTileScalar(WeightFormat format, const std::byte* tile, int64_t cols,
                     const std::byte* panel, int tokens, TileSums& sums);
void FastBf16TileScalar(WeightFormat format, const std::byte* tile,
                        int64_t cols, const std::byte* panel, int tokens,
                        TileSums& sums);
void FastQuantTileScalar(WeightFormat format, const std::byte* tile,
                         int64_t cols, const std::byte* panel, int tokens,
                         TileSums& sums);

}  // namespace millrace::kernels
