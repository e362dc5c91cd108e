#include "cli/bench/format_product.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "cli/bench/time_limit.h"
#include "kernels/quant/tile.h"
#include "model/spec/stage_memory.h"
#include "stage-worker/layers/products.h"

namespace millrace::cli {
namespace {

// Results of a long prompt over all rows would be gigabytes, which no layer
// writes: 64 MB of them are more than any layer of a stage has.
constexpr int64_t kResultsMax = int64_t{16} << 20;
// Tries grow from one tile by this factor, and are long enough to judge by once
// they take this part of the time wanted.
constexpr int64_t kTryGrowth = 4;
constexpr double kTryPart = 0.1;

}  // namespace

int64_t FormatProduct::RowsMax(const MachineMeter& meter, const Shape& shape) {
  const int64_t stored =
      meter.bytes() / kernels::TileBytes(shape.format, kCols);
  const int64_t written =
      kResultsMax / shape.tokens / int64_t{kernels::kTileRows};
  return std::max<int64_t>(1, std::min(stored, written)) * kernels::kTileRows;
}

absl::StatusOr<std::unique_ptr<FormatProduct>> FormatProduct::Create(
    MachineMeter& meter, const kernels::KernelTable& table, const Shape& shape,
    absl::Duration time) {
  const int64_t bytes = model::PackedRowsBytesMax(shape.tokens, kCols) +
                        shape.tokens * (kCols + RowsMax(meter, shape)) * 4 +
                        int64_t{4} * 64;
  MILLRACE_ASSIGN_OR_RETURN(worker::MappedMemory memory,
                            worker::MappedMemory::Map(bytes));
  std::unique_ptr<FormatProduct> product(
      new FormatProduct(meter, table, shape, std::move(memory)));
  product->FitRows(product->weight_.rows, time);
  MILLRACE_RETURN_IF_ERROR(TimeLimit().CheckInterrupt());
  return product;
}

void FormatProduct::FitRows(int64_t rows_max, absl::Duration time) {
  const TimeLimit never;  // but an interrupt
  weight_.rows = kernels::kTileRows;
  absl::Duration tried = Run();
  while (tried < kTryPart * time && weight_.rows < rows_max && !never.Over()) {
    weight_.rows = std::min(weight_.rows * kTryGrowth, rows_max);
    tried = Run();
  }
  const double rows =
      static_cast<double>(weight_.rows) * absl::FDivDuration(time, tried);
  const auto tiles =
      static_cast<int64_t>(std::min(rows, static_cast<double>(rows_max))) /
      kernels::kTileRows;
  weight_.rows = std::max<int64_t>(1, tiles) * kernels::kTileRows;
}

FormatProduct::FormatProduct(MachineMeter& meter,
                             const kernels::KernelTable& table,
                             const Shape& shape, worker::MappedMemory memory)
    : shape_(shape), memory_(std::move(memory)) {
  worker::Carver carver(memory_.data(), memory_.bytes());
  step_.kernels = &table;
  step_.pool = &meter.pool();
  step_.packed_bytes = model::PackedRowsBytesMax(shape.tokens, kCols);
  std::byte* const packed = carver.Take(step_.packed_bytes);
  std::fill(std::begin(step_.buffers.packed), std::end(step_.buffers.packed),
            packed);
  weight_ = {shape.format, RowsMax(meter, shape), kCols, meter.data()};
  x_ = carver.TakeFloats(shape.tokens * kCols);
  y_ = carver.TakeFloats(shape.tokens * weight_.rows);
  // Between -1 and 1, no two neighbours alike.
  for (int64_t i = 0; i < shape.tokens * kCols; ++i) {
    x_[i] = static_cast<float>(i * 37 % 255 - 127) / 127.0f;
  }
}

absl::Duration FormatProduct::Run() {
  const absl::Duration start = clock_.Monotonic();
  const worker::ProductInput input = {.x = x_,
                                      .x_stride = kCols,
                                      .row_index = nullptr,
                                      .num_tokens = shape_.tokens};
  const worker::Product product = {
      .weight = &weight_, .bias = nullptr, .y = y_, .y_stride = weight_.rows};
  worker::Multiply(step_, input, {&product, 1}, shape_.compute, {});
  return clock_.Monotonic() - start;
}

absl::Duration FormatProduct::MeanTime(absl::Duration time) {
  const TimeLimit limit(time);
  absl::Duration sum;
  int64_t runs = 0;
  do {
    sum += Run();
    ++runs;
  } while (!limit.Over());
  return sum / runs;
}

int64_t FormatProduct::weight_bytes() const {
  return kernels::NumTiles(weight_.rows) *
         kernels::TileBytes(shape_.format, kCols);
}

double FormatProduct::operations() const {
  return 2.0 * static_cast<double>(weight_.rows * kCols) *
         static_cast<double>(shape_.tokens);
}

}  // namespace millrace::cli
