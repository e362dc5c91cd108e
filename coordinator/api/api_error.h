#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "coordinator/http/http_message.h"

namespace millrace::coordinator {

// What the API says when it refuses: {"error": {message, type, param, code}}.
struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;                // empty: null
  std::string code;                 // empty: null
  int64_t retry_after_seconds = 0;  // 0: no such field
};

// A refusal of one field, as a status that carries its name. Messages speak of
// the field and its bounds, never of the value that came.
[[nodiscard]] absl::Status ParamError(absl::string_view param,
                                      absl::string_view what);
// The same with a code of the API, such as context_length_exceeded.
[[nodiscard]] absl::Status ParamError(absl::string_view param,
                                      absl::string_view what,
                                      absl::string_view code);

// 404 model_not_found.
[[nodiscard]] absl::Status ModelNotFound(absl::string_view asked,
                                         absl::string_view served);

// Any status as what a client is told: ParamError 400, kInvalidArgument 400,
// kNotFound 404 model_not_found, kResourceExhausted 429, kUnavailable 503,
// everything else 500.
ApiError ApiErrorFrom(const absl::Status& status);

// The object {"error": ...}.
Json ErrorJson(const ApiError& error);
HttpResponse ErrorResponse(const ApiError& error);
HttpResponse ErrorResponse(const absl::Status& status);

// A refusal of HTTP itself.
ApiError PlainError(int status, absl::string_view message);

}  // namespace millrace::coordinator
