#include "coordinator/api/api_handler.h"

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "boost/json/string.hpp"
#include "coordinator/api/api_error.h"
#include "coordinator/api/utf8.h"

namespace millrace::coordinator {
namespace {

namespace json = boost::json;

// Requests that wait for a worker; each holds its body.
constexpr size_t kWorkQueueMax = 1024;
constexpr int kJsonDepthMax = 64;

HttpResponse JsonResponse(const Json& value) {
  return {.status = 200,
          .content_type = "application/json",
          .body = WriteJson(value)};
}

// "%41" as "A"; what is no valid escape stays.
std::string PercentDecoded(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() &&
        absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) &&
        absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]))) {
      out += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// Bodies are JSON; a form or a plain text is not, and a browser may send those
// to a local server from any page.
bool IsJsonType(absl::string_view content_type) {
  const absl::string_view type = absl::StripAsciiWhitespace(
      content_type.substr(0, content_type.find(';')));
  return type.empty() || absl::EqualsIgnoreCase(type, "application/json");
}

constexpr absl::string_view kModelPrefix = "/v1/models/";

}  // namespace

struct ApiHandler::Route {
  absl::string_view path;
  bool prefix = false;  // fits every longer path
  bool open = false;    // needs no key
  HttpResponse (ApiHandler::*get)(const HttpRequest&) const = nullptr;
  absl::StatusOr<GenerationPlan> (RequestPlanner::*plan)(const Json&) = nullptr;
  absl::StatusOr<Json> (RequestPlanner::*answer)(const Json&) const = nullptr;

  [[nodiscard]] absl::string_view methods() const {
    return get != nullptr ? "GET, HEAD, OPTIONS" : "POST, OPTIONS";
  }
  [[nodiscard]] bool Allows(absl::string_view method) const {
    return get != nullptr ? method == "GET" || method == "HEAD"
                          : method == "POST";
  }
};

const ApiHandler::Route* ApiHandler::FindRoute(absl::string_view path) {
  static constexpr std::array<Route, 10> kRoutes = {{
      {.path = "/v1/chat/completions", .plan = &RequestPlanner::PlanChat},
      {.path = "/v1/completions", .plan = &RequestPlanner::PlanText},
      {.path = "/v1/models", .get = &ApiHandler::Models},
      {.path = kModelPrefix, .prefix = true, .get = &ApiHandler::Model},
      {.path = "/tokenize", .answer = &RequestPlanner::Tokenize},
      {.path = "/detokenize", .answer = &RequestPlanner::Detokenize},
      {.path = "/health", .open = true, .get = &ApiHandler::Health},
      {.path = "/ready", .open = true, .get = &ApiHandler::Ready},
      {.path = "/version", .get = &ApiHandler::Version},
      {.path = "/metrics", .get = &ApiHandler::Metrics},
  }};
  for (const Route& route : kRoutes) {
    if (path == route.path ||
        (route.prefix && path.size() > route.path.size() &&
         absl::StartsWith(path, route.path))) {
      return &route;
    }
  }
  return nullptr;
}

ApiHandler::ApiHandler(Options options)
    : options_(std::move(options)),
      planner_(options_.model, options_.fingerprint, *options_.services->clock),
      workers_(options_.num_workers, kWorkQueueMax) {}

ApiHandler::~ApiHandler() = default;

HttpResponse ApiHandler::Refusal(int status, absl::string_view why) {
  return ErrorResponse(PlainError(status, why));
}

bool ApiHandler::AcceptHead(const HttpRequest& head, HttpResponse& refusal) {
  const Route* route = FindRoute(head.path);
  if (route == nullptr) {
    refusal = Refusal(404, "there is no such path on this server");
    return false;
  }
  if (head.method == "OPTIONS") {
    return true;
  }
  if (!route->Allows(head.method)) {
    refusal = Refusal(405, absl::StrCat("this path knows ", route->methods()));
    refusal.headers.push_back({"Allow", std::string(route->methods())});
    return false;
  }
  if (!route->open && !options_.keys.Authorizes(head.Header("authorization"))) {
    ApiError error = PlainError(
        401, head.Has("authorization")
                 ? "this API key is not known here"
                 : "an API key is needed: Authorization: Bearer KEY");
    error.code = "invalid_api_key";
    refusal = ErrorResponse(error);
    return false;
  }
  if (route->get != nullptr) {
    return true;
  }
  const absl::string_view coding = head.Header("content-encoding");
  if (!coding.empty() && !absl::EqualsIgnoreCase(coding, "identity")) {
    refusal = Refusal(415, "compressed bodies are not read: send plain JSON");
    return false;
  }
  if (!IsJsonType(head.Header("content-type"))) {
    refusal = Refusal(415, "the body must be of type application/json");
    return false;
  }
  return true;
}

void ApiHandler::Handle(HttpRequest request,
                        std::shared_ptr<Exchange> exchange) {
  const Route& route = *FindRoute(request.path);
  if (request.method == "OPTIONS") {
    exchange->Send(
        {.status = 204, .headers = {{"Allow", std::string(route.methods())}}});
    return;
  }
  if (route.get != nullptr) {
    exchange->Send((this->*route.get)(request));
    return;
  }
  const absl::Duration received = options_.services->clock->Monotonic();
  auto shared = std::make_shared<HttpRequest>(std::move(request));
  if (!workers_.TrySubmit([this, &route, shared, received, exchange] {
        Work(route, *shared, received, exchange);
      })) {
    exchange->Send(Refusal(503, "too many requests wait to be read"));
  }
}

absl::StatusOr<GenerationPlan> ApiHandler::MakePlan(const Route& route,
                                                    const Json& body) {
  MILLRACE_RETURN_IF_ERROR(CheckServing());
  return (planner_.*route.plan)(body);
}

void ApiHandler::Work(const Route& route, const HttpRequest& request,
                      absl::Duration received,
                      const std::shared_ptr<Exchange>& exchange) {
  absl::StatusOr<Json> body = ParseJson(
      request.body, "body",
      {.bytes_max = options_.body_bytes_max, .depth_max = kJsonDepthMax});
  if (!body.ok()) {
    exchange->Send(ErrorResponse(body.status()));
    return;
  }
  if (route.answer != nullptr) {
    absl::StatusOr<Json> answer = (planner_.*route.answer)(*body);
    exchange->Send(answer.ok() ? JsonResponse(*answer)
                               : ErrorResponse(answer.status()));
    return;
  }
  absl::StatusOr<GenerationPlan> plan = MakePlan(route, *body);
  if (!plan.ok()) {
    options_.services->metrics->CountRequest(RequestOutcome::kRefused);
    exchange->Send(ErrorResponse(plan.status()));
    return;
  }
  plan->received = received;
  options_.services->post(
      [services = options_.services,
       shared = std::make_shared<GenerationPlan>(*std::move(plan)),
       exchange] { Generation::Run(services, std::move(*shared), exchange); });
}

Json ApiHandler::ModelEntry() const {
  return json::object{{"id", options_.model.name},
                      {"object", "model"},
                      {"created", absl::ToUnixSeconds(options_.model.created)},
                      {"owned_by", "millrace"},
                      {"max_model_len", options_.model.limits.context}};
}

HttpResponse ApiHandler::Models(const HttpRequest& /*request*/) const {
  return JsonResponse(
      json::object{{"object", "list"}, {"data", json::array{ModelEntry()}}});
}

HttpResponse ApiHandler::Model(const HttpRequest& request) const {
  const std::string name = PercentDecoded(
      absl::string_view(request.path).substr(kModelPrefix.size()));
  if (name != options_.model.name) {
    return ErrorResponse(ModelNotFound(name, options_.model.name));
  }
  return JsonResponse(ModelEntry());
}

// Says 503 as soon as one stage is lost, and which.
HttpResponse ApiHandler::Health(const HttpRequest& /*request*/) const {
  const EngineSnapshot snapshot = options_.services->engine->Snapshot();
  bool alive = true;
  json::array stages;
  for (const StageSnapshot& stage : snapshot.stages) {
    alive = alive && stage.alive;
    stages.push_back(
        json::object{{"name", stage.name}, {"alive", stage.alive}});
  }
  HttpResponse response = JsonResponse(json::object{
      {"status", alive ? "ok" : "stage lost"}, {"stages", std::move(stages)}});
  response.status = alive ? 200 : 503;
  return response;
}

absl::Status ApiHandler::CheckServing() const {
  if (draining_.load(std::memory_order_relaxed)) {
    return MakeError(absl::StatusCode::kUnavailable, "server",
                     "is shutting down");
  }
  const EngineSnapshot snapshot = options_.services->engine->Snapshot();
  if (!snapshot.ready) {
    return MakeError(
        absl::StatusCode::kUnavailable, "cluster",
        snapshot.not_ready_reason.empty()
            ? "is not ready"
            : absl::StrCat("is not ready: ", snapshot.not_ready_reason));
  }
  return absl::OkStatus();
}

HttpResponse ApiHandler::Ready(const HttpRequest& /*request*/) const {
  if (const absl::Status status = CheckServing(); !status.ok()) {
    return ErrorResponse(status);
  }
  return JsonResponse(json::object{{"status", "ready"}});
}

HttpResponse ApiHandler::Version(const HttpRequest& /*request*/) const {
  return JsonResponse(json::object{{"version", options_.version}});
}

HttpResponse ApiHandler::Metrics(const HttpRequest& /*request*/) const {
  return {.status = 200,
          .content_type = kMetricsContentType,
          .body = options_.services->metrics->Serialize(
              options_.services->engine->Snapshot(),
              options_.num_connections ? options_.num_connections() : 0)};
}

}  // namespace millrace::coordinator
