#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/json.h"

namespace millrace::planner::report {

using JsonObject = boost::json::object;

// Text that came from a file, as HTML text or as a quoted attribute value: no
// character of it is markup. Bytes that are not UTF-8, control characters and
// those that turn the direction of text become U+FFFD.
std::string Escaped(absl::string_view text);

// The first `characters_max` characters of UTF-8, with an ellipsis when there
// are more.
std::string Shortened(absl::string_view text, size_t characters_max);

// For people, "unknown" where there is none: "12,288", "812 ms", "1,234.5".
std::string CountText(const std::optional<int64_t>& count);
std::string SecondsText(const std::optional<double>& seconds);
std::string RateText(const std::optional<double>& per_second);
std::string PercentText(double share);

// The same as elements that also hold the exact number:
// <data value="12300000000">12.3 GB</data>.
std::string SizeData(int64_t bytes);
std::string CountData(const std::optional<int64_t>& count);
std::string SecondsData(const std::optional<double>& seconds);
std::string RateData(const std::optional<double>& per_second);

// The mark of a number: what the plan says of it under `key` in `provenance`,
// measured, estimated or given; empty where it says nothing.
std::string MarkOf(const JsonObject& provenance, absl::string_view key);

}  // namespace millrace::planner::report
