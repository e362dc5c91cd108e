#include "base/error.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace millrace {
namespace {

constexpr char kObjectUrl[] = "millrace/object";
constexpr char kHintUrl[] = "millrace/hint";
constexpr char kKindUrl[] = "millrace/kind";

std::string Payload(const absl::Status& status, absl::string_view url) {
  std::optional<absl::Cord> payload;
  if (auto found = status.GetPayload(url); found.has_value()) {
    return std::string(*found);
  }
  return "";
}

absl::Status Build(absl::StatusCode code, ErrorKind kind,
                   absl::string_view object, absl::string_view what,
                   absl::string_view hint) {
  absl::Status status(code, object.empty() ? std::string(what)
                                           : absl::StrCat(object, ": ", what));
  if (!object.empty()) {
    status.SetPayload(kObjectUrl, absl::Cord(object));
  }
  if (!hint.empty()) {
    status.SetPayload(kHintUrl, absl::Cord(hint));
  }
  status.SetPayload(kKindUrl, absl::Cord(absl::StrCat(static_cast<int>(kind))));
  return status;
}

// Whether a terminal may take a sequence for a command, or people read what
// follows in another order than it stands: C1 controls, directions of writing.
bool MisleadsTerminals(absl::string_view sequence) {
  if (sequence.size() == 2) {
    return sequence[0] == '\xC2' &&
           static_cast<unsigned char>(sequence[1]) < 0xA0;
  }
  return sequence.size() == 3 && sequence[0] == '\xE2' &&
         ((sequence[1] == '\x80' && sequence[2] >= '\xAA' &&
           sequence[2] <= '\xAE') ||
          (sequence[1] == '\x81' && sequence[2] >= '\xA6' &&
           sequence[2] <= '\xA9'));
}

}  // namespace

absl::Status InputError(absl::string_view object, absl::string_view what,
                        absl::string_view hint) {
  return Build(absl::StatusCode::kInvalidArgument, ErrorKind::kInput, object,
               what, hint);
}

absl::Status UsageError(absl::string_view object, absl::string_view what,
                        absl::string_view hint) {
  return Build(absl::StatusCode::kInvalidArgument, ErrorKind::kUsage, object,
               what, hint);
}

absl::Status AnswerIsNo(absl::string_view object, absl::string_view what,
                        absl::string_view hint) {
  return Build(absl::StatusCode::kFailedPrecondition, ErrorKind::kAnswerNo,
               object, what, hint);
}

absl::Status MakeError(absl::StatusCode code, absl::string_view object,
                       absl::string_view what, absl::string_view hint) {
  return Build(code, ErrorKind::kFailed, object, what, hint);
}

absl::Status WithObject(const absl::Status& status, absl::string_view object) {
  if (status.ok()) {
    return status;
  }
  return Build(status.code(), KindOf(status), object, status.message(),
               HintOf(status));
}

absl::Status WithHint(const absl::Status& status, absl::string_view hint) {
  if (status.ok()) {
    return status;
  }
  return Build(status.code(), KindOf(status), ObjectOf(status), WhatOf(status),
               hint);
}

ErrorKind KindOf(const absl::Status& status) {
  const std::string kind = Payload(status, kKindUrl);
  if (kind.size() != 1 || kind[0] < '0' || kind[0] > '3') {
    return ErrorKind::kFailed;
  }
  return static_cast<ErrorKind>(kind[0] - '0');
}

std::string ObjectOf(const absl::Status& status) {
  return Payload(status, kObjectUrl);
}

std::string HintOf(const absl::Status& status) {
  return Payload(status, kHintUrl);
}

std::string WhatOf(const absl::Status& status) {
  const std::string prefix = absl::StrCat(ObjectOf(status), ": ");
  absl::string_view message = status.message();
  if (prefix.size() > 2 && message.substr(0, prefix.size()) == prefix) {
    message.remove_prefix(prefix.size());
  }
  return std::string(message);
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) {
    return 0;
  }
  return static_cast<int>(KindOf(status)) + 1;
}

std::string ErrnoText(int number) {
  const char* text = strerrordesc_np(number);
  return text != nullptr ? text : absl::StrCat("error ", number);
}

std::string Printable(absl::string_view text, size_t bytes_max) {
  std::string out;
  while (!text.empty() && out.size() < bytes_max) {
    const size_t length = Utf8SequenceLength(text);
    const unsigned char lead = static_cast<unsigned char>(text[0]);
    const absl::string_view next = text.substr(0, std::max<size_t>(length, 1));
    if (length == 0 || lead < 0x20 || lead == 0x7F || MisleadsTerminals(next)) {
      for (const char byte : next) {
        absl::StrAppendFormat(&out, "\\x%02x",
                              static_cast<unsigned char>(byte));
      }
    } else {
      absl::StrAppend(&out, next);
    }
    text.remove_prefix(next.size());
  }
  if (!text.empty()) {
    absl::StrAppend(&out, "...");
  }
  return out;
}

}  // namespace millrace
