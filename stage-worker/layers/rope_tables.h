#pragma once

#include <cstdint>
#include <vector>

#include "model/spec/model_spec.h"
#include "stage-worker/layers/step_context.h"
#include "stage-worker/runtime/weights.h"

namespace millrace::worker {

// Cosines and sines of the rows of one step, for every different rotation of
// the stage's layers. Step thread.
class RopeTables {
 public:
  // Borrows the weights' spec. `num_slots`: dynamic scaling keeps frequencies
  // per sequence, fixed when it opens.
  RopeTables(const Weights& weights, int64_t num_slots);

  // A sequence starts in `slot` with a prompt of this length.
  void Open(int64_t slot, int64_t prompt_tokens);

  // Fills the tables in step.buffers for all rows.
  void Fill(StepContext& step);

  // Column at which this rotation's values start in a row of the tables, -1 for
  // one that no layer of the stage has; and elements between rows.
  [[nodiscard]] int64_t ColumnOf(const model::RopeSpec* rope) const;
  [[nodiscard]] int64_t stride() const { return stride_; }

 private:
  struct Rotation {
    const model::RopeSpec* spec = nullptr;
    int64_t pairs = 0;
    int64_t column = 0;
    const float* divisors = nullptr;
    // [pairs], or [num_slots, pairs] where scaling is dynamic.
    std::vector<double> frequencies;
  };
  static void Frequencies(const Rotation& rotation, int64_t prompt_tokens,
                          double* out);

  std::vector<Rotation> rotations_;
  int64_t stride_ = 0;
};

}  // namespace millrace::worker
