#include "cli/number_checks.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace millrace::cli {
namespace {

template <typename Number>
absl::Status OutOfRange(absl::string_view option, Number value, Number least,
                        Number most) {
  return UsageError(option, absl::StrCat(value, " is out of range"),
                    absl::StrCat("give a number from ", least, " to ", most));
}

}  // namespace

absl::Status CheckCount(absl::string_view option, int64_t value, int64_t least,
                        int64_t most) {
  return value < least || value > most ? OutOfRange(option, value, least, most)
                                       : absl::OkStatus();
}

absl::Status CheckNumber(absl::string_view option,
                         const std::optional<double>& value, double least,
                         double most) {
  const bool fits = !value.has_value() || (std::isfinite(*value) &&
                                           *value >= least && *value <= most);
  return fits ? absl::OkStatus() : OutOfRange(option, *value, least, most);
}

}  // namespace millrace::cli
