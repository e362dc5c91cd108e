#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace millrace {

// "29GB" (10^9), "512MiB" (2^20), "1.5GiB", plain bytes. Decimal fractions are
// exact and rounded down to a byte; results are below 2^63.
absl::StatusOr<int64_t> ParseSize(absl::string_view text);

// "200ms", "3s", "5us", "2m", "1h"; a plain number is seconds. Never negative.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// The same as seconds, without the grid of absl::Duration.
absl::StatusOr<double> ParseSeconds(absl::string_view text);

// Bytes per second: "50GB/s", "100Gbit/s"; a plain number is bytes per second.
absl::StatusOr<double> ParseRate(absl::string_view text);

// For people: "94.4 MB", "1.2 GB"; decimal units, three significant digits.
std::string HumanSize(int64_t bytes);
// For people: "812 ms", "3.21 s", "45 us".
std::string HumanDuration(absl::Duration duration);

}  // namespace millrace
