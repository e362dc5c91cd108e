#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/prompt_input.h"

namespace millrace::cli {

// A conversation as a file: JSON, version 1, the messages in order. InputError
// for a file that is none, roles other than system, user and assistant, or one
// too large.
absl::StatusOr<std::vector<ChatMessage>> ReadSession(const std::string& path);
[[nodiscard]] absl::Status WriteSession(
    const std::string& path, const std::vector<ChatMessage>& messages);

}  // namespace millrace::cli
