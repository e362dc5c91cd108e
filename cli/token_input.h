#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::cli {

// A list of at least one id, see ParseNumberList. UsageError naming `object`
// for anything else, and for ids outside [0, vocab_size).
absl::StatusOr<std::vector<int32_t>> ParseTokenIds(absl::string_view text,
                                                   absl::string_view object,
                                                   int64_t vocab_size);

// All of standard input, at most `bytes_max`. kCancelled after an interrupt.
absl::StatusOr<std::string> ReadStdin(int64_t bytes_max);

// Longest text that a command takes from a file or standard input.
inline constexpr int64_t kTextBytesMax = int64_t{1} << 30;

}  // namespace millrace::cli
