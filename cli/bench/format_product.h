#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cli/bench/machine_meter.h"
#include "kernels/kernel_table.h"
#include "stage-worker/layers/step_context.h"
#include "stage-worker/runtime/mapped_memory.h"
#include "stage-worker/runtime/weights.h"

namespace millrace::cli {

// One matrix product as a stage does it (packing, chunks, all threads), with
// weights that are the bytes of a meter. Borrows meter and table. One thread.
class FormatProduct {
 public:
  struct Shape {
    kernels::WeightFormat format = kernels::WeightFormat::kF32;
    kernels::ComputeMode compute = kernels::ComputeMode::kFast;
    int64_t tokens = 1;
  };
  static constexpr int64_t kCols = 4096;

  // As many rows as the meter's memory holds, or as take about `time`, at least
  // 16; known after tries that grow, so that no machine is too slow for
  // the first one. kResourceExhausted without memory, kCancelled after an
  // interrupt.
  static absl::StatusOr<std::unique_ptr<FormatProduct>> Create(
      MachineMeter& meter, const kernels::KernelTable& table,
      const Shape& shape, absl::Duration time);
  FormatProduct(const FormatProduct&) = delete;
  FormatProduct& operator=(const FormatProduct&) = delete;

  // Multiplies once; how long it took.
  absl::Duration Run();
  // Multiplies until `time` has passed, at least once, and until an interrupt;
  // the mean time of one Run.
  absl::Duration MeanTime(absl::Duration time);

  [[nodiscard]] int64_t rows() const { return weight_.rows; }
  [[nodiscard]] int64_t weight_bytes() const;
  // Multiplications and additions of one Run.
  [[nodiscard]] double operations() const;

 private:
  FormatProduct(MachineMeter& meter, const kernels::KernelTable& table,
                const Shape& shape, worker::MappedMemory memory);
  static int64_t RowsMax(const MachineMeter& meter, const Shape& shape);
  // Takes rows that take about `time`, `rows_max` at most.
  void FitRows(int64_t rows_max, absl::Duration time);

  const SystemClock clock_;
  const Shape shape_;
  worker::MappedMemory memory_;
  worker::LoadedMatrix weight_;
  worker::StepContext step_;
  float* x_ = nullptr;  // [tokens, kCols]
  float* y_ = nullptr;  // [tokens, rows]
};

}  // namespace millrace::cli
