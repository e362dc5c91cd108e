#include "cli/console.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/mutex.h"
#include "boost/json/object.hpp"
#include "cli/interrupt.h"

namespace millrace::cli {
namespace {

// A pipe with room takes as much without waiting.
constexpr size_t kPieceBytes = PIPE_BUF;

// 0, or the errno of the write that failed: EINTR where an interrupt came and
// the reader does not read.
int WriteAll(int descriptor, absl::string_view bytes) {
  while (!bytes.empty()) {
    if (!AwaitRoom(descriptor)) {
      return EINTR;
    }
    const ssize_t put =
        write(descriptor, bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (put >= 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
    } else if (errno != EINTR && errno != EAGAIN) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

Console::Console(bool json)
    : json_(json),
      out_is_terminal_(isatty(STDOUT_FILENO) != 0),
      err_is_terminal_(isatty(STDERR_FILENO) != 0),
      color_(err_is_terminal_ && std::getenv("NO_COLOR") == nullptr) {}

void Console::Out(absl::string_view bytes) {
  if (out_errno_ == 0) {
    out_errno_ = WriteAll(STDOUT_FILENO, bytes);
  }
}

void Console::OutJson(const Json& document) {
  answered_ = true;
  Out(absl::StrCat(WriteJson(document), "\n"));
}

void Console::Announce(absl::string_view bytes) {
  WriteAll(STDOUT_FILENO, bytes);
}

void Console::AnnounceJson(const Json& document) {
  Announce(absl::StrCat(WriteJson(document), "\n"));
}

absl::Status Console::OutStatus() const {
  if (out_errno_ == 0) {
    return absl::OkStatus();
  }
  return MakeError(out_errno_ == EPIPE ? absl::StatusCode::kAborted
                                       : absl::StatusCode::kUnavailable,
                   "stdout",
                   absl::StrCat("cannot be written: ", ErrnoText(out_errno_)));
}

void Console::Note(absl::string_view line) {
  WriteAll(STDERR_FILENO,
           absl::StrCat(err_is_terminal_ ? "\r\x1b[K" : "", line, "\n"));
}

void Console::Warn(absl::string_view warning) {
  if (!warning.empty()) {
    Note(absl::StrCat("warning: ", warning));
  }
}

void Console::Progress(absl::string_view text) {
  if (err_is_terminal_) {
    WriteAll(STDERR_FILENO, absl::StrCat("\r\x1b[K", text));
  }
}

void Console::Error(const absl::Status& status) {
  if (json_ && !(answered_ && KindOf(status) == ErrorKind::kAnswerNo)) {
    boost::json::object document;
    document["error"] = ErrorJson(status);
    OutJson(document);
  }
  const absl::string_view red = color_ ? "\x1b[31m" : "";
  const absl::string_view plain = color_ ? "\x1b[0m" : "";
  Note(absl::StrCat("millrace: ", red, "error:", plain, " ", status.message()));
  const std::string hint = HintOf(status);
  if (!hint.empty()) {
    Note(absl::StrCat("hint: ", hint));
  }
}

Json ErrorJson(const absl::Status& status) {
  boost::json::object error;
  error["code"] =
      absl::AsciiStrToLower(absl::StatusCodeToString(status.code()));
  error["message"] = std::string(status.message());
  error["object"] = ObjectOf(status);
  const std::string hint = HintOf(status);
  error["hint"] =
      hint.empty() ? Json(nullptr) : Json(boost::json::string(hint));
  return error;
}

}  // namespace millrace::cli
