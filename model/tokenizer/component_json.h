#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "model/tokenizer/pattern.h"

namespace millrace::model {

// What the components of a tokenizer.json have in common when they are read.

// Calls `add` for each element of the list at `key`, with its dotted path.
// More than kComponentsMax elements are an InputError; nesting is bounded by
// the JSON parser.
inline constexpr size_t kComponentsMax = 64;
absl::Status ForEachComponent(
    const JsonObject& object, absl::string_view key, absl::string_view path,
    const std::function<absl::Status(const Json&, absl::string_view)>& add);

// {"String": ...} or {"Regex": ...} at `key`.
absl::StatusOr<std::unique_ptr<Pattern>> PatternFromJson(
    const JsonObject& object, absl::string_view key, absl::string_view file);

// "type X is not supported".
absl::Status UnsupportedComponent(const JsonObject& object,
                                  absl::string_view type);

}  // namespace millrace::model
