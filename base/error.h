#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace millrace {

// Errors that people meet name the object they are about and what to do next.
// They travel as an absl::Status whose message reads "OBJECT: WHAT AND WHY";
// object, hint and kind ride along as payloads. Plain statuses from elsewhere
// are shown as they are, with kind kFailed.
enum class ErrorKind {
  kFailed,    // failed while running: exit code 1
  kUsage,     // unknown option, value out of range, not in this version: 2
  kAnswerNo,  // the question was understood and the answer is no: 3
  kInput,     // input missing, damaged or unsupported: 4
};

// A file, model or other input that cannot be used. kInvalidArgument.
[[nodiscard]] absl::Status InputError(absl::string_view object,
                                      absl::string_view what,
                                      absl::string_view hint = "");

// An option or argument that is wrong or not available. kInvalidArgument.
[[nodiscard]] absl::Status UsageError(absl::string_view object,
                                      absl::string_view what,
                                      absl::string_view hint = "");

// "Does not fit", "is damaged", "misses the limit". kFailedPrecondition.
[[nodiscard]] absl::Status AnswerIsNo(absl::string_view object,
                                      absl::string_view what,
                                      absl::string_view hint = "");

// Any other failure, with a code chosen by what the caller does next.
[[nodiscard]] absl::Status MakeError(absl::StatusCode code,
                                     absl::string_view object,
                                     absl::string_view what,
                                     absl::string_view hint = "");

// The same error with another object in front; keeps code, kind and hint.
// For callers that know better what the message is about.
[[nodiscard]] absl::Status WithObject(const absl::Status& status,
                                      absl::string_view object);

// The same error with this hint.
[[nodiscard]] absl::Status WithHint(const absl::Status& status,
                                    absl::string_view hint);

ErrorKind KindOf(const absl::Status& status);
// Empty where the status carries none.
std::string ObjectOf(const absl::Status& status);
std::string HintOf(const absl::Status& status);
// The message without the object in front of it.
std::string WhatOf(const absl::Status& status);

// 0 for OK, else 1 to 4 by kind.
int ExitCodeOf(const absl::Status& status);

// What an errno value means, without the name of a call. Thread-safe, which
// strerror is not.
std::string ErrnoText(int number);

// A name taken from a file or a client, made safe and short for an error
// message: control characters and invalid UTF-8 escaped, cut to `bytes_max`.
std::string Printable(absl::string_view text, size_t bytes_max = 120);

}  // namespace millrace
