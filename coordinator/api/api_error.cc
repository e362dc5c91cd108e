#include "coordinator/api/api_error.h"

#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "boost/json/object.hpp"
#include "boost/json/value.hpp"
#include "coordinator/engine/engine.h"

namespace millrace::coordinator {
namespace {

constexpr char kParamUrl[] = "millrace/api-param";
constexpr char kCodeUrl[] = "millrace/api-code";
// Said with 503: a stage that was lost is back within seconds or not soon.
constexpr int64_t kNotReadyRetrySeconds = 5;
constexpr size_t kModelNameBytesShown = 64;

std::string Payload(const absl::Status& status, absl::string_view url) {
  const auto payload = status.GetPayload(url);
  return payload.has_value() ? std::string(*payload) : "";
}

Json TextOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

absl::Status ParamError(absl::string_view param, absl::string_view what,
                        absl::string_view code) {
  absl::Status status = absl::InvalidArgumentError(
      param.empty() ? std::string(what) : absl::StrCat(param, ": ", what));
  status.SetPayload(kParamUrl, absl::Cord(param));
  if (!code.empty()) {
    status.SetPayload(kCodeUrl, absl::Cord(code));
  }
  return status;
}

absl::Status ParamError(absl::string_view param, absl::string_view what) {
  return ParamError(param, what, "");
}

absl::Status ModelNotFound(absl::string_view asked, absl::string_view served) {
  absl::Status status = absl::NotFoundError(
      absl::StrCat("the model '", Printable(asked, kModelNameBytesShown),
                   "' is not served here; this server has '", served, "'"));
  status.SetPayload(kParamUrl, absl::Cord("model"));
  status.SetPayload(kCodeUrl, absl::Cord("model_not_found"));
  return status;
}

ApiError ApiErrorFrom(const absl::Status& status) {
  ApiError error;
  error.message = std::string(status.message());
  error.param = Payload(status, kParamUrl);
  error.code = Payload(status, kCodeUrl);
  if (const std::string hint = HintOf(status); !hint.empty()) {
    absl::StrAppend(&error.message, " (", hint, ")");
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      break;
    case absl::StatusCode::kNotFound:
      error.status = 404;
      break;
    case absl::StatusCode::kUnauthenticated:
      error.status = 401;
      break;
    case absl::StatusCode::kResourceExhausted:
      error.status = 429;
      error.type = "rate_limit_error";
      error.code = "queue_full";
      error.retry_after_seconds = RetryAfterOf(status);
      break;
    case absl::StatusCode::kUnavailable:
      error.status = 503;
      error.type = "service_unavailable_error";
      error.code = "not_ready";
      error.retry_after_seconds = kNotReadyRetrySeconds;
      break;
    default:
      error.status = 500;
      error.type = "server_error";
      break;
  }
  return error;
}

Json ErrorJson(const ApiError& error) {
  return boost::json::object{
      {"error", boost::json::object{{"message", error.message},
                                    {"type", error.type},
                                    {"param", TextOrNull(error.param)},
                                    {"code", TextOrNull(error.code)}}}};
}

HttpResponse ErrorResponse(const ApiError& error) {
  HttpResponse response{.status = error.status,
                        .content_type = "application/json",
                        .body = WriteJson(ErrorJson(error))};
  if (error.retry_after_seconds > 0) {
    response.headers.push_back(
        {"Retry-After", absl::StrCat(error.retry_after_seconds)});
  }
  if (error.status == 401) {
    response.headers.push_back({"WWW-Authenticate", "Bearer"});
  }
  return response;
}

HttpResponse ErrorResponse(const absl::Status& status) {
  return ErrorResponse(ApiErrorFrom(status));
}

ApiError PlainError(int status, absl::string_view message) {
  ApiError error;
  error.status = status;
  error.message = std::string(message);
  if (status >= 500 && status != 501 && status != 505) {
    error.type = "service_unavailable_error";
    error.retry_after_seconds = 1;
  }
  return error;
}

}  // namespace millrace::coordinator
