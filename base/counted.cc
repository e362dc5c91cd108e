#include "base/counted.h"

#include "absl/strings/str_cat.h"

namespace millrace {

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", NounFor(count, noun));
}

std::string NounFor(int64_t count, absl::string_view noun) {
  return absl::StrCat(noun, count == 1 ? "" : "s");
}

}  // namespace millrace
