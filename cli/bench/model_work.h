#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "cli/bench/machine_meter.h"
#include "kernels/ceilings/ceilings.h"
#include "kernels/compute_mode.h"
#include "model/spec/model_spec.h"

namespace millrace::cli {

// Multiplications and additions, by what bounds them.
struct Work {
  std::array<double, kernels::kNumPeaks> operations = {};

  [[nodiscard]] double total() const;
  Work& operator+=(const Work& other);
  Work& operator*=(double factor);
};

// Of the matrix products of one token through all layers; of the experts those
// that a token chooses, in the mean of their formats.
Work LayerWork(const model::ModelSpec& spec, kernels::ComputeMode compute);
// Of the head for one row.
Work HeadWork(const model::ModelSpec& spec, kernels::ComputeMode compute);
// Of attention for one row that sees `num_keys` keys.
Work AttentionWork(const model::ModelSpec& spec, int64_t num_keys);

// A token that is decoded with so many keys before it and itself.
Work DecodeWork(const model::ModelSpec& spec, kernels::ComputeMode compute,
                int64_t num_keys);
// A prompt up to its first token: the head sees its last row alone.
Work PrefillWork(const model::ModelSpec& spec, kernels::ComputeMode compute,
                 int64_t prompt_tokens);

// Operations per second if every part ran at its peak; none where a peak that
// is needed is not known.
std::optional<double> CeilingOf(const Work& work, const MachineRates& rates);

bool HasExperts(const model::ModelSpec& spec);

}  // namespace millrace::cli
