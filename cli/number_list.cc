#include "cli/number_list.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"

namespace millrace::cli {
namespace {

constexpr absl::string_view kHint = "give whole numbers, as 1,2,3";

}  // namespace

absl::StatusOr<std::vector<int64_t>> ParseNumberList(absl::string_view text,
                                                     absl::string_view object,
                                                     absl::string_view what) {
  std::vector<int64_t> numbers;
  if (absl::StripAsciiWhitespace(text).empty()) {
    return numbers;
  }
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    bool any = false;
    for (const absl::string_view word :
         absl::StrSplit(part, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
      int64_t number = 0;
      if (word[0] == '+' || !absl::SimpleAtoi(word, &number)) {
        return UsageError(object,
                          absl::StrCat("'", Printable(word), "' is no ", what),
                          kHint);
      }
      numbers.push_back(number);
      any = true;
    }
    if (!any) {
      return UsageError(
          object,
          absl::StrCat("a comma stands where a ", what, " is missing, behind ",
                       numbers.size(), " of them"),
          kHint);
    }
  }
  return numbers;
}

}  // namespace millrace::cli
