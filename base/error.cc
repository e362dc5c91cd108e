#include "base/error.h"

#include <cstring>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

// Length of the well-formed UTF-8 sequence at the front of `text`, 0 if none.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  const bool overlong =
      (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool beyond =
      (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF4 && byte(1) > 0x8F);
  return overlong || beyond ? 0 : length;
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
    const size_t length = SequenceLength(text);
    const unsigned char lead = static_cast<unsigned char>(text[0]);
    if (length == 0 || lead < 0x20 || lead == 0x7F) {
      absl::StrAppendFormat(&out, "\\x%02x", lead);
      text.remove_prefix(1);
    } else {
      absl::StrAppend(&out, text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  if (!text.empty()) {
    absl::StrAppend(&out, "...");
  }
  return out;
}

}  // namespace millrace
