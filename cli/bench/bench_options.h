#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/compute_mode.h"
#include "kernels/quant/weight_format.h"

namespace millrace::cli {

inline constexpr int64_t kRepeatMax = 1000;
// Tokens of a prompt or an answer: as long as the longest contexts of models.
inline constexpr int64_t kLengthMax = int64_t{1} << 20;

// What options of benchmarks share. Errors are UsageErrors naming the option.

// Threads to measure with: all that this process may use, or `asked` of them.
// More would take turns on the same cores, and what they did would be no rate
// of this machine.
absl::StatusOr<int> MeasuringThreads(const std::optional<int64_t>& asked);
// "1,4,16": at least one number, each from 1 to `most`.
absl::StatusOr<std::vector<int64_t>> ParseCounts(absl::string_view option,
                                                 const std::string& text,
                                                 int64_t most);
// "q8_0,q4_0"; all formats where empty.
absl::StatusOr<std::vector<kernels::WeightFormat>> ParseFormats(
    const std::string& text);
// "fast,exact".
absl::StatusOr<std::vector<kernels::ComputeMode>> ParseComputes(
    const std::string& text);

const char* ComputeName(kernels::ComputeMode compute);

}  // namespace millrace::cli
