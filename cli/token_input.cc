#include "cli/token_input.h"

#include <errno.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "cli/interrupt.h"
#include "cli/number_list.h"

namespace millrace::cli {

absl::StatusOr<std::vector<int32_t>> ParseTokenIds(absl::string_view text,
                                                   absl::string_view object,
                                                   int64_t vocab_size) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                            ParseNumberList(text, object, "token id"));
  std::vector<int32_t> ids;
  ids.reserve(numbers.size());
  for (const int64_t id : numbers) {
    if (id < 0 || id >= vocab_size) {
      return UsageError(object,
                        absl::StrCat("token ", id, " is not in the vocabulary"),
                        absl::StrCat("ids go from 0 to ", vocab_size - 1));
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  if (ids.empty()) {
    return UsageError(object, "holds no token ids",
                      "give whole numbers, as 1,2,3");
  }
  return ids;
}

absl::StatusOr<std::string> ReadStdin(int64_t bytes_max) {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    if (!AwaitInput(STDIN_FILENO)) {
      return absl::CancelledError("interrupted while reading stdin");
    }
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return InputError("stdin",
                        absl::StrCat("cannot be read: ", ErrnoText(errno)));
    }
    if (got == 0) {
      return text;
    }
    text.append(buffer, static_cast<size_t>(got));
    if (static_cast<int64_t>(text.size()) > bytes_max) {
      return InputError("stdin",
                        absl::StrCat("is more than ", bytes_max, " bytes"));
    }
  }
}

}  // namespace millrace::cli
