#include "proto/error_codec.h"

#include <string>

#include "base/error.h"

namespace millrace::control {
namespace {

constexpr size_t kTextBytesMax = 2000;

v1::ErrorKind EncodeKind(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kFailed:
      return v1::ERROR_KIND_FAILED;
    case ErrorKind::kUsage:
      return v1::ERROR_KIND_USAGE;
    case ErrorKind::kAnswerNo:
      return v1::ERROR_KIND_ANSWER_NO;
    case ErrorKind::kInput:
      return v1::ERROR_KIND_INPUT;
  }
  return v1::ERROR_KIND_UNSPECIFIED;
}

}  // namespace

v1::Error EncodeError(const absl::Status& status) {
  v1::Error error;
  error.set_code(static_cast<int>(status.code()));
  error.set_kind(EncodeKind(KindOf(status)));
  // Protobuf strings are UTF-8; file names need not be.
  error.set_object(Printable(ObjectOf(status), kTextBytesMax));
  error.set_message(Printable(WhatOf(status), kTextBytesMax));
  error.set_hint(Printable(HintOf(status), kTextBytesMax));
  return error;
}

absl::Status DecodeError(const v1::Error& error) {
  const std::string object = Printable(error.object(), kTextBytesMax);
  const std::string what = Printable(error.message(), kTextBytesMax);
  const std::string hint = Printable(error.hint(), kTextBytesMax);
  const bool known =
      error.code() > 0 &&
      error.code() <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  const auto code = known ? static_cast<absl::StatusCode>(error.code())
                          : absl::StatusCode::kInternal;
  // The kinds other than kFailed carry their own code.
  switch (error.kind()) {
    case v1::ERROR_KIND_USAGE:
      return UsageError(object, what, hint);
    case v1::ERROR_KIND_ANSWER_NO:
      return AnswerIsNo(object, what, hint);
    case v1::ERROR_KIND_INPUT:
      return InputError(object, what, hint);
    default:
      return MakeError(code, object, what, hint);
  }
}

}  // namespace millrace::control
