#include "cli/option_checks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/error.h"

namespace millrace::cli {
namespace {

// An empty text is one, too; empty lists of ids and empty stop texts have
// errors of their own.
constexpr std::array<absl::string_view, 5> kMayBeEmpty = {
    "prompt", "text", "tokens", "decode", "stop"};

bool IsDigits(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char letter) {
           return absl::ascii_isdigit(letter);
         });
}

// The checks as CLI11 wants them: empty, or what is wrong with the text, which
// may be written anew.

std::string CheckWhole(std::string& text, bool is_signed) {
  absl::string_view digits = text;
  const bool negative = absl::ConsumePrefix(&digits, "-");
  if (!IsDigits(digits)) {
    return absl::StrCat("'", Printable(text), "' is no whole number");
  }
  while (digits.size() > 1 && absl::ConsumePrefix(&digits, "0")) {
  }
  std::string decimal = absl::StrCat(negative ? "-" : "", digits);
  int64_t as_signed = 0;
  uint64_t as_unsigned = 0;
  const bool fits = is_signed || negative
                        ? absl::SimpleAtoi(decimal, &as_signed)
                        : absl::SimpleAtoi(decimal, &as_unsigned);
  if (!fits) {
    return absl::StrCat("'", Printable(text), "' is beyond 64 bits");
  }
  text = std::move(decimal);
  return "";
}

std::string CheckDecimal(const std::string& text) {
  constexpr absl::string_view kLetters = "0123456789.eE+-";
  double value = 0;
  if (text.find_first_not_of(kLetters.data(), 0, kLetters.size()) !=
          std::string::npos ||
      absl::StartsWith(text, "+") || !absl::SimpleAtod(text, &value)) {
    return absl::StrCat("'", Printable(text), "' is no number");
  }
  return "";
}

std::string CheckNotEmpty(const std::string& text) {
  return text.empty() ? "is empty: give a value or leave the option out" : "";
}

bool MayBeEmpty(const CLI::Option& option) {
  return std::any_of(kMayBeEmpty.begin(), kMayBeEmpty.end(),
                     [&](absl::string_view name) {
                       return option.check_lname(std::string(name));
                     });
}

}  // namespace

void CheckOptionValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0) {
      continue;  // a flag
    }
    // What an option checks already stands behind its type.
    const std::string type = option->get_type_name();
    if (absl::StartsWith(type, "INT")) {
      option->transform(CLI::Validator(
          [](std::string& text) { return CheckWhole(text, true); }, ""));
    } else if (absl::StartsWith(type, "UINT")) {
      option->transform(CLI::Validator(
          [](std::string& text) { return CheckWhole(text, false); }, ""));
    } else if (absl::StartsWith(type, "FLOAT")) {
      option->transform(CLI::Validator(CheckDecimal, ""));
    }
    if (!MayBeEmpty(*option)) {
      option->transform(CLI::Validator(CheckNotEmpty, ""));
    }
  }
}

}  // namespace millrace::cli
