#include "planner/report/page_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/quantity.h"
#include "boost/json/object.hpp"

namespace millrace::planner::report {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: the text does not start with a valid one
};

// The first code point of a text that is not empty.
CodePoint FirstCodePoint(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1};
  }
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) {
    return {};
  }
  uint32_t value = lead & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      return {};
    }
    value = value << 6 | (byte(i) & 0x3FU);
  }
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[bytes] || value > 0x10FFFF ||
      (value >= 0xD800 && value <= 0xDFFF)) {
    return {};
  }
  return {value, bytes};
}

// Controls, and what makes text read in another order than it is written.
bool IsHidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x200E ||
         code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF ||
         (code & 0xFFFE) == 0xFFFE;
}

std::string Data(const std::string& exact, const std::string& text) {
  return absl::StrCat("<data value=\"", exact, "\">", text, "</data>");
}

// Thousands apart: "1,234,567".
std::string Grouped(const std::string& digits) {
  std::string out;
  const size_t whole = std::min(digits.find('.'), digits.size());
  const size_t start = !digits.empty() && digits[0] == '-' ? 1 : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > start && i < whole && (whole - i) % 3 == 0) {
      out.push_back(',');
    }
    out.push_back(digits[i]);
  }
  return out;
}

}  // namespace

std::string Escaped(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint code = FirstCodePoint(text);
    if (code.bytes == 0 || IsHidden(code.value)) {
      out += kReplacement;
    } else if (code.value == '<') {
      out += "&lt;";
    } else if (code.value == '>') {
      out += "&gt;";
    } else if (code.value == '&') {
      out += "&amp;";
    } else if (code.value == '"') {
      out += "&quot;";
    } else if (code.value == '\'') {
      out += "&#39;";
    } else {
      absl::StrAppend(&out, text.substr(0, code.bytes));
    }
    text.remove_prefix(std::max<size_t>(1, code.bytes));
  }
  return out;
}

std::string Shortened(absl::string_view text, size_t characters_max) {
  size_t characters = 0;
  size_t kept = 0;
  for (size_t i = 0; i < text.size(); ++characters) {
    if (characters + 1 == characters_max) {
      kept = i;
    }
    if (characters == characters_max) {
      return absl::StrCat(text.substr(0, kept), "…");
    }
    i += std::max<size_t>(1, FirstCodePoint(text.substr(i)).bytes);
  }
  return std::string(text);
}

std::string CountText(const std::optional<int64_t>& count) {
  return count.has_value() ? Grouped(absl::StrCat(*count)) : "unknown";
}

std::string SecondsText(const std::optional<double>& seconds) {
  return seconds.has_value() ? HumanDuration(absl::Seconds(*seconds))
                             : "unknown";
}

std::string RateText(const std::optional<double>& per_second) {
  if (!per_second.has_value()) {
    return "unknown";
  }
  const double value = *per_second;
  return value >= 1000  ? Grouped(absl::StrFormat("%.0f", value))
         : value >= 100 ? absl::StrFormat("%.0f", value)
         : value >= 10  ? absl::StrFormat("%.1f", value)
                        : absl::StrFormat("%.3g", value);
}

std::string PercentText(double share) {
  return share > 0 && share < 0.01 ? absl::StrFormat("%.2g %%", share * 100)
                                   : absl::StrFormat("%.0f %%", share * 100);
}

std::string SizeData(int64_t bytes) {
  return Data(absl::StrCat(bytes), HumanSize(bytes));
}

std::string CountData(const std::optional<int64_t>& count) {
  return count.has_value() ? Data(absl::StrCat(*count), CountText(count))
                           : CountText(count);
}

std::string SecondsData(const std::optional<double>& seconds) {
  return seconds.has_value()
             ? Data(absl::StrFormat("%.17g", *seconds), SecondsText(seconds))
             : SecondsText(seconds);
}

std::string RateData(const std::optional<double>& per_second) {
  return per_second.has_value()
             ? Data(absl::StrFormat("%.17g", *per_second), RateText(per_second))
             : RateText(per_second);
}

std::string MarkOf(const JsonObject& provenance, absl::string_view key) {
  const Json* word =
      provenance.if_contains(boost::json::string_view(key.data(), key.size()));
  if (word == nullptr || !word->is_string() || word->get_string().empty()) {
    return "";
  }
  const boost::json::string& text = word->get_string();
  const std::string escaped = Escaped({text.data(), text.size()});
  return absl::StrCat("<sup class=\"mark\" title=\"", escaped, "\">",
                      Escaped({text.data(), 1}), "</sup>");
}

}  // namespace millrace::planner::report
