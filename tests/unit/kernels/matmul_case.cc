#include "tests/unit/kernels/matmul_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/quant/tile.h"

namespace millrace::kernels {

AlignedBytes::AlignedBytes(int64_t size) {
  void* bytes = nullptr;
  if (posix_memalign(&bytes, 64, static_cast<size_t>(size)) != 0) {
    std::abort();
  }
  bytes_.reset(static_cast<std::byte*>(bytes));
}

bool SameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

std::string Describe(const MatMulShape& shape) {
  return std::string(TraitsOf(shape.format).name) + " rows " +
         std::to_string(shape.rows) + " cols " + std::to_string(shape.cols) +
         " tokens " + std::to_string(shape.tokens);
}

MatMulCase::MatMulCase(const MatMulShape& shape, Spread weights,
                       Spread activations, std::mt19937& random)
    : shape(shape),
      tiles(NumTiles(shape.rows) * TileBytes(shape.format, shape.cols)),
      x_stride(shape.cols + static_cast<int64_t>(random() % 3)) {
  for (int64_t row = 0; row < shape.rows; row += kTileRows) {
    const std::vector<std::byte> bytes =
        RandomRows(shape.format, std::min<int64_t>(kTileRows, shape.rows - row),
                   shape.cols, weights, random);
    stored.insert(stored.end(), bytes.begin(), bytes.end());
  }
  const int64_t row_bytes = StoredRowBytes(shape.format, shape.cols);
  for (int64_t tile = 0; tile < NumTiles(shape.rows); ++tile) {
    const int64_t left = shape.rows - tile * kTileRows;
    PackTile(shape.format, Row(tile * kTileRows), row_bytes,
             static_cast<int>(left < kTileRows ? left : kTileRows), shape.cols,
             tiles.data() + tile * TileBytes(shape.format, shape.cols));
  }
  for (int64_t i = 0; i < shape.tokens * x_stride; ++i) {
    x.push_back(RandomFloat(activations, random));
  }
  if (random() % 2 == 0) {
    for (int64_t t = 0; t < shape.tokens; ++t) {
      row_index.push_back(
          static_cast<int32_t>(random() % static_cast<uint32_t>(shape.tokens)));
    }
  }
  if (shape.bias) {
    for (int64_t row = 0; row < shape.rows; ++row) {
      bias.push_back(RandomFloat(Spread::kOrdinary, random));
    }
  }
}

const float* MatMulCase::Token(int64_t token) const {
  const int64_t row =
      row_index.empty() ? token : row_index[static_cast<size_t>(token)];
  return x.data() + row * x_stride;
}

const std::byte* MatMulCase::Row(int64_t row) const {
  return stored.data() + row * StoredRowBytes(shape.format, shape.cols);
}

std::vector<float> RunMatMul(const KernelTable& table, ComputeMode mode,
                             const MatMulCase& product) {
  const MatMulShape& shape = product.shape;
  const ActivationForm form = ActivationFormFor(mode, shape.format);
  // Without the rounding of PackedActivationBytes().
  const int64_t packed_bytes =
      shape.tokens * PackedTokenBytes(form, shape.cols);
  AlignedBytes packed(packed_bytes);
  // Anything may stand in memory that packing does not write.
  std::memset(packed.data(), 0xff, static_cast<size_t>(packed_bytes));
  const PackActivationsFn pack = table.pack_activations[static_cast<int>(form)];
  const PackActivationsArgs pack_args = {
      .x = product.x.data(),
      .x_stride = product.x_stride,
      .row_index =
          product.row_index.empty() ? nullptr : product.row_index.data(),
      .num_tokens = shape.tokens,
      .cols = shape.cols,
      .packed = packed.data(),
  };
  const int64_t panels = NumPanels(shape.tokens);
  pack(pack_args, panels / 2, panels);
  pack(pack_args, 0, panels / 2);

  const int64_t y_stride = shape.rows + 3;
  std::vector<float> y(static_cast<size_t>(shape.tokens * y_stride),
                       kUntouched);
  const MatMulArgs args = {
      .tiles = product.tiles.data(),
      .rows = shape.rows,
      .cols = shape.cols,
      .packed = packed.data(),
      .num_tokens = shape.tokens,
      .bias = product.bias.empty() ? nullptr : product.bias.data(),
      .y = y.data(),
      .y_stride = y_stride,
  };
  const MatMulFn matmul =
      table.matmul[static_cast<int>(mode)][static_cast<int>(shape.format)];
  const int64_t tiles = NumTiles(shape.rows);
  matmul(args, tiles / 3, tiles);
  matmul(args, 0, tiles / 3);
  return y;
}

}  // namespace millrace::kernels
