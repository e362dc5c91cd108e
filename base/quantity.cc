#include "base/quantity.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/status_macros.h"

namespace millrace {
namespace {

struct Split {
  absl::string_view number;
  absl::string_view unit;
};

// Splits "1.5GiB" behind its last digit; white space between is allowed.
Split SplitUnit(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  size_t end = 0;
  while (end < text.size() &&
         (absl::ascii_isdigit(text[end]) || text[end] == '.' ||
          ((text[end] == 'e' || text[end] == 'E') && end + 1 < text.size() &&
           (absl::ascii_isdigit(text[end + 1]) || text[end + 1] == '-' ||
            text[end + 1] == '+')) ||
          ((text[end] == '-' || text[end] == '+') && end > 0 &&
           (text[end - 1] == 'e' || text[end - 1] == 'E')))) {
    ++end;
  }
  return {text.substr(0, end), absl::StripAsciiWhitespace(text.substr(end))};
}

// Bytes per unit of a size; 0 when unknown.
int64_t SizeUnit(absl::string_view unit) {
  struct Unit {
    absl::string_view name;
    int64_t bytes;
  };
  static constexpr Unit kUnits[] = {
      {"", 1},
      {"B", 1},
      {"kB", 1000},
      {"KB", 1000},
      {"MB", 1000'000},
      {"GB", 1000'000'000},
      {"TB", 1000'000'000'000},
      {"PB", 1000'000'000'000'000},
      {"KiB", int64_t{1} << 10},
      {"MiB", int64_t{1} << 20},
      {"GiB", int64_t{1} << 30},
      {"TiB", int64_t{1} << 40},
      {"PiB", int64_t{1} << 50},
  };
  for (const Unit& known : kUnits) {
    if (known.name == unit) {
      return known.bytes;
    }
  }
  return 0;
}

absl::Status Malformed(absl::string_view text, absl::string_view kind,
                       absl::string_view example) {
  return UsageError(absl::StrCat("'", Printable(text, 60), "'"),
                    absl::StrCat("is no ", kind),
                    absl::StrCat("write it as ", example));
}

// digits[.digits] times `scale`, rounded down, exactly; fails at 2^63.
bool ScaleDecimal(absl::string_view number, int64_t scale, int64_t* out) {
  const size_t point = number.find('.');
  const absl::string_view whole = number.substr(0, point);
  const absl::string_view fraction =
      point == absl::string_view::npos ? "" : number.substr(point + 1);
  if ((whole.empty() && fraction.empty()) || fraction.size() > 18) {
    return false;
  }
  using Wide = unsigned __int128;
  Wide numerator = 0;
  Wide denominator = 1;
  for (const char c : whole) {
    if (!absl::ascii_isdigit(c)) {
      return false;
    }
    numerator = numerator * 10 + static_cast<unsigned>(c - '0');
    if (numerator >> 63 != 0) {
      return false;
    }
  }
  for (const char c : fraction) {
    if (!absl::ascii_isdigit(c)) {
      return false;
    }
    numerator = numerator * 10 + static_cast<unsigned>(c - '0');
    denominator *= 10;
  }
  // numerator < 2^63 * 10^18 < 2^123; divide before multiplying where needed.
  const Wide quotient = numerator / denominator;
  const Wide rest = numerator % denominator;
  const Wide wide_scale = static_cast<Wide>(scale);
  const Wide value = quotient * wide_scale + rest * wide_scale / denominator;
  if (value >> 63 != 0) {
    return false;
  }
  *out = static_cast<int64_t>(value);
  return true;
}

absl::StatusOr<double> ParseNumber(absl::string_view number,
                                   const absl::Status& otherwise) {
  double value = 0;
  if (number.empty() || !absl::SimpleAtod(number, &value) ||
      !std::isfinite(value) || value < 0) {
    return otherwise;
  }
  return value;
}

}  // namespace

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  const absl::Status malformed =
      Malformed(text, "size", "29GB, 512MiB or plain bytes, below 2^63");
  const Split split = SplitUnit(text);
  const int64_t unit = SizeUnit(split.unit);
  int64_t bytes = 0;
  if (unit == 0 || !ScaleDecimal(split.number, unit, &bytes)) {
    return malformed;
  }
  return bytes;
}

absl::StatusOr<double> ParseSeconds(absl::string_view text) {
  const absl::Status malformed =
      Malformed(text, "duration", "200ms, 3s or plain seconds");
  const Split split = SplitUnit(text);
  MILLRACE_ASSIGN_OR_RETURN(const double value,
                            ParseNumber(split.number, malformed));
  if (split.unit.empty() || split.unit == "s") {
    return value;
  }
  if (split.unit == "ms") {
    return value / 1e3;
  }
  if (split.unit == "us") {
    return value / 1e6;
  }
  if (split.unit == "ns") {
    return value / 1e9;
  }
  if (split.unit == "m" || split.unit == "min") {
    return value * 60;
  }
  if (split.unit == "h") {
    return value * 3600;
  }
  return malformed;
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  MILLRACE_ASSIGN_OR_RETURN(const double seconds, ParseSeconds(text));
  return absl::Seconds(seconds);
}

absl::StatusOr<double> ParseRate(absl::string_view text) {
  const absl::Status malformed =
      Malformed(text, "rate", "50GB/s, 100Gbit/s or plain bytes per second");
  const Split split = SplitUnit(text);
  MILLRACE_ASSIGN_OR_RETURN(const double value,
                            ParseNumber(split.number, malformed));
  absl::string_view unit = split.unit;
  if (unit.empty()) {
    return value;
  }
  if (!absl::ConsumeSuffix(&unit, "/s")) {
    return malformed;
  }
  if (absl::ConsumeSuffix(&unit, "bit")) {
    const int64_t scale = SizeUnit(absl::StrCat(unit, "B"));
    if (scale == 0) {
      return malformed;
    }
    return value * static_cast<double>(scale) / 8;
  }
  const int64_t scale = SizeUnit(unit);
  if (scale == 0) {
    return malformed;
  }
  return value * static_cast<double>(scale);
}

std::string HumanSize(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (std::fabs(value) >= 999.5 && unit < 5) {
    value /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || std::fabs(value) >= 99.95 ? 0
                     : std::fabs(value) >= 9.995            ? 1
                                                            : 2;
  return absl::StrFormat("%.*f %s", digits, value, kUnits[unit]);
}

std::string HumanDuration(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds >= 1) {
    return absl::StrFormat("%.2f s", seconds);
  }
  if (seconds >= 1e-3) {
    return absl::StrFormat("%.3g ms", seconds * 1e3);
  }
  return absl::StrFormat("%.3g us", seconds * 1e6);
}

}  // namespace millrace
