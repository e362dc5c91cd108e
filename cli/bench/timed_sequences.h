#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/bench/statistics.h"
#include "coordinator/engine/engine.h"

namespace millrace::cli {

// Submits all prompts at once, greedy and without end tokens, and waits until
// each has its `tokens_max` tokens; when each came, in the order of the
// prompts. An interrupt, also one from before, cancels them (kCancelled). Not
// from the engine's thread.
absl::StatusOr<std::vector<SequenceTimes>> RunTimed(
    coordinator::Engine& engine,
    const std::vector<std::vector<int32_t>>& prompts, int64_t tokens_max);

// `count` prompts of random ids below `vocab_size`, the same for equal seeds.
std::vector<std::vector<int32_t>> RandomPrompts(int64_t count, int64_t length,
                                                int64_t vocab_size,
                                                uint64_t seed);

}  // namespace millrace::cli
