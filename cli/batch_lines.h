#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "boost/json/object.hpp"
#include "cli/console.h"

namespace millrace::cli {

// What a command makes of one line of `--batch`; `object` names file and line.
using LineAnswer = std::function<absl::StatusOr<boost::json::object>(
    absl::string_view line, const std::string& object)>;

// Answers every line of a file that is not empty with one JSON document a line,
// in order; a line that fails is its `error`. Fails only when the file cannot
// be read.
[[nodiscard]] absl::Status AnswerLines(const std::string& path,
                                       const LineAnswer& answer,
                                       Console& console);

}  // namespace millrace::cli
