#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/compute_mode.h"
#include "kernels/quant/weight_format.h"

namespace millrace::kernels {

// In which form a product takes its activations.
enum class ActivationForm : uint8_t {
  kF32,   // exact products; F32 and F16 weights always
  kBf16,  // BF16 weights in fast mode: pairs (2i, 2i+1)
  kInt8,  // quantised weights in fast mode: groups of 32
};
inline constexpr int kNumActivationForms = 3;

ActivationForm ActivationFormFor(ComputeMode mode, WeightFormat format);

// Bytes that one packed token takes: a panel begins at PanelBegin() times this.
int64_t PackedTokenBytes(ActivationForm form, int64_t cols);

// Bytes of `num_tokens` packed rows of `cols` elements, a multiple of 64.
int64_t PackedActivationBytes(ActivationForm form, int64_t num_tokens,
                              int64_t cols);

// How num_tokens are cut into panels of nearly equal size: panel p of
// NumPanels() holds the tokens [PanelBegin(p), PanelBegin(p + 1)), at most 16.
int64_t NumPanels(int64_t num_tokens);
int64_t PanelBegin(int64_t num_tokens, int64_t panel);

// Extents are positive here and below, cols a whole number of the format's
// blocks.
struct PackActivationsArgs {
  // Token t is row `row_index[t]` of x, or row t where row_index is null.
  const float* x;            // [*, cols] f32
  int64_t x_stride;          // >= cols
  const int32_t* row_index;  // [num_tokens] or null
  int64_t num_tokens;
  int64_t cols;
  std::byte* packed;  // PackedActivationBytes(), 64-byte aligned
};
// Packs the panels [panel_begin, panel_end); disjoint ranges may run
// concurrently.
using PackActivationsFn = void (*)(const PackActivationsArgs& args,
                                   int64_t panel_begin, int64_t panel_end);

// y[t,o] = bias[o] + sum_i x[t,i] * w[o,i]
struct MatMulArgs {
  const std::byte* tiles;  // w [rows, cols] as tiles (quant/tile.h), 64-byte
                           // aligned
  int64_t rows;            // out features
  int64_t cols;            // in features
  // x [num_tokens, cols] as packed above, in the ActivationFormFor() the
  // product's mode and format.
  const std::byte* packed;
  int64_t num_tokens;
  const float* bias;  // [rows] or null; added after the product
  // [num_tokens, rows] f32, row stride y_stride >= rows; must not alias the
  // inputs. Only [0, rows) of a row is written.
  float* y;
  int64_t y_stride;
};
// Computes the tiles [tile_begin, tile_end) for all tokens; disjoint ranges
// may run concurrently. Each element is accumulated in the one order of
// README.md, whatever the ISA, num_tokens and range.
using MatMulFn = void (*)(const MatMulArgs& args, int64_t tile_begin,
                          int64_t tile_end);

}  // namespace millrace::kernels
