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
// The published default of text completions.
constexpr int64_t kTextTokensDefault = 16;
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

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

constexpr absl::string_view kModelPrefix = "/v1/models/";

}  // namespace

struct ApiHandler::Route {
  absl::string_view path;
  bool prefix = false;  // fits every longer path
  bool open = false;    // needs no key
  HttpResponse (ApiHandler::*get)(const HttpRequest&) const = nullptr;
  absl::StatusOr<GenerationPlan> (ApiHandler::*plan)(const Json&) = nullptr;
  absl::StatusOr<Json> (ApiHandler::*answer)(const Json&) const = nullptr;

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
      {.path = "/v1/chat/completions", .plan = &ApiHandler::PlanChat},
      {.path = "/v1/completions", .plan = &ApiHandler::PlanText},
      {.path = "/v1/models", .get = &ApiHandler::Models},
      {.path = kModelPrefix, .prefix = true, .get = &ApiHandler::Model},
      {.path = "/tokenize", .answer = &ApiHandler::Tokenize},
      {.path = "/detokenize", .answer = &ApiHandler::Detokenize},
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
      chat_prompts_{.tokenizer = options_.model.tokenizer,
                    .chat_template = options_.model.chat_template,
                    .bos_text = options_.model.bos_text,
                    .eos_text = options_.model.eos_text,
                    .parse_special = options_.model.parse_special},
      generator_(RandomSeed()),
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
  auto shared = std::make_shared<HttpRequest>(std::move(request));
  if (!workers_.TrySubmit([this, &route, shared, exchange] {
        Work(route, *shared, exchange);
      })) {
    exchange->Send(Refusal(503, "too many requests wait to be read"));
  }
}

void ApiHandler::Work(const Route& route, const HttpRequest& request,
                      const std::shared_ptr<Exchange>& exchange) {
  const absl::Duration received = options_.services->clock->Monotonic();
  absl::StatusOr<Json> body = ParseJson(
      request.body, "body",
      {.bytes_max = options_.body_bytes_max, .depth_max = kJsonDepthMax});
  if (!body.ok()) {
    exchange->Send(ErrorResponse(body.status()));
    return;
  }
  if (route.answer != nullptr) {
    absl::StatusOr<Json> answer = (this->*route.answer)(*body);
    exchange->Send(answer.ok() ? JsonResponse(*answer)
                               : ErrorResponse(answer.status()));
    return;
  }
  absl::StatusOr<GenerationPlan> plan = (this->*route.plan)(*body);
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

absl::Status ApiHandler::CheckModel(const FieldReader& reader) const {
  MILLRACE_ASSIGN_OR_RETURN(const auto name, reader.String("model"));
  if (name.has_value() && *name != options_.model.name) {
    return ModelNotFound(*name, options_.model.name);
  }
  return absl::OkStatus();
}

uint64_t ApiHandler::Draw() {
  MutexLock lock(mutex_);
  return generator_();
}

GenerationPlan ApiHandler::NewPlan(const GenerationFields& fields, bool chat) {
  const ServedModel& model = options_.model;
  GenerationPlan plan;
  plan.head = {.chat = chat,
               .id = absl::StrFormat("%s-%016x%08x", chat ? "chatcmpl" : "cmpl",
                                     Draw(), static_cast<uint32_t>(Draw())),
               .created = absl::ToUnixSeconds(options_.services->clock->Now()),
               .model = model.name,
               .fingerprint = options_.fingerprint};
  plan.session = {.tokenizer = model.tokenizer,
                  .stop = fields.stop,
                  .skip_special = fields.skip_special,
                  .end_tokens = fields.stop_token_ids};
  if (!fields.ignore_eos) {
    plan.session.end_tokens.insert(plan.session.end_tokens.end(),
                                   model.end_tokens.begin(),
                                   model.end_tokens.end());
  }
  plan.return_token_ids = fields.return_token_ids || model.tokenizer == nullptr;
  plan.stream = fields.stream;
  plan.include_usage = fields.include_usage;
  return plan;
}

GenerateRequest ApiHandler::MakeRequest(const GenerationFields& fields,
                                        uint64_t seed, int64_t choice) const {
  GenerateRequest request;
  request.sampling = fields.sampling;
  request.sampling.seed = seed;
  request.sampling.choice = static_cast<uint32_t>(choice);
  request.stop_tokens = fields.stop_token_ids;
  if (!fields.ignore_eos) {
    request.stop_tokens.insert(request.stop_tokens.end(),
                               options_.model.end_tokens.begin(),
                               options_.model.end_tokens.end());
  }
  return request;
}

absl::StatusOr<GenerationPlan> ApiHandler::PlanChat(const Json& body) {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  MILLRACE_RETURN_IF_ERROR(CheckModel(reader));
  const ModelLimits& limits = options_.model.limits;
  MILLRACE_ASSIGN_OR_RETURN(const ChatRequest chat,
                            ReadChatRequest(body, limits));
  MILLRACE_RETURN_IF_ERROR(CheckServing());
  MILLRACE_ASSIGN_OR_RETURN(
      std::vector<int32_t> ids,
      chat_prompts_.Make(chat, options_.services->clock->Now()));
  if (ids.empty()) {
    return ParamError("messages", "make an empty prompt with this template");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t tokens_max,
      TokensToGenerate(chat.fields, limits, static_cast<int64_t>(ids.size()),
                       limits.context, "messages"));
  GenerationPlan plan = NewPlan(chat.fields, /*chat=*/true);
  plan.session.want_logprobs = chat.want_logprobs;
  plan.top_logprobs = chat.top_logprobs;
  plan.prompt_tokens = static_cast<int64_t>(ids.size());
  const uint64_t seed = chat.fields.seed.value_or(Draw());
  for (int64_t choice = 0; choice < chat.fields.n; ++choice) {
    GenerateRequest request = MakeRequest(chat.fields, seed, choice);
    request.prompt = ids;
    request.tokens_max = tokens_max;
    request.want_logprobs = chat.want_logprobs;
    request.top_logprobs = chat.top_logprobs;
    plan.sequences.push_back({.request = std::move(request)});
  }
  return plan;
}

absl::StatusOr<GenerationPlan> ApiHandler::PlanText(const Json& body) {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  MILLRACE_RETURN_IF_ERROR(CheckModel(reader));
  const ServedModel& model = options_.model;
  MILLRACE_ASSIGN_OR_RETURN(const CompletionRequest text,
                            ReadCompletionRequest(body, model.limits));
  if (!text.fields.stop.empty() && model.tokenizer == nullptr) {
    return ParamError("stop",
                      "this model has no tokenizer: use stop_token_ids");
  }
  MILLRACE_RETURN_IF_ERROR(CheckServing());
  GenerationPlan plan = NewPlan(text.fields, /*chat=*/false);
  plan.session.want_logprobs = text.want_logprobs;
  plan.top_logprobs = text.top_logprobs;
  const uint64_t seed = text.fields.seed.value_or(Draw());
  for (const TextPrompt& prompt : text.prompts) {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                              PromptIds(prompt, model.tokenizer));
    const auto num_ids = static_cast<int64_t>(ids.size());
    MILLRACE_ASSIGN_OR_RETURN(
        const int64_t tokens_max,
        TokensToGenerate(text.fields, model.limits, num_ids, kTextTokensDefault,
                         "prompt"));
    plan.prompt_tokens += num_ids;
    SequencePlan sequence{.echo = text.echo};
    if (const auto* own = std::get_if<std::string>(&prompt);
        text.echo && own != nullptr) {
      sequence.echo_text = *own;
    } else if (text.echo && model.tokenizer != nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(
          const std::string decoded,
          model.tokenizer->Decode(ids, text.fields.skip_special));
      sequence.echo_text = WellFormed(decoded);
    }
    for (int64_t choice = 0; choice < text.fields.n; ++choice) {
      sequence.request = MakeRequest(text.fields, seed, choice);
      sequence.request.prompt = ids;
      sequence.request.tokens_max = tokens_max;
      sequence.request.want_logprobs = text.want_logprobs;
      sequence.request.top_logprobs = text.top_logprobs;
      sequence.request.want_prompt_scores = text.echo && text.want_logprobs;
      plan.sequences.push_back(sequence);
    }
  }
  return plan;
}

absl::StatusOr<Json> ApiHandler::Tokenize(const Json& body) const {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  MILLRACE_RETURN_IF_ERROR(CheckModel(reader));
  const model::Tokenizer* tokenizer = options_.model.tokenizer;
  if (tokenizer == nullptr) {
    return ParamError("prompt", "this model has no tokenizer");
  }
  std::vector<int32_t> ids;
  if (reader.Has("messages")) {
    ChatRequest chat;
    MILLRACE_RETURN_IF_ERROR(ReadMessages(reader, chat));
    MILLRACE_ASSIGN_OR_RETURN(
        ids, chat_prompts_.Make(chat, options_.services->clock->Now()));
  } else {
    std::optional<std::string> text;
    for (const absl::string_view name : {"prompt", "content", "text"}) {
      if (!text.has_value()) {
        MILLRACE_ASSIGN_OR_RETURN(text, reader.String(name));
      }
    }
    if (!text.has_value()) {
      return ParamError("prompt", "is missing");
    }
    MILLRACE_ASSIGN_OR_RETURN(const auto special,
                              reader.Bool("add_special_tokens"));
    absl::StatusOr<std::vector<int32_t>> encoded = tokenizer->Encode(
        *text, model::AddedTokenMode::kParseSpecial, special.value_or(true));
    if (!encoded.ok()) {
      return ParamError("prompt", WhatOf(encoded.status()));
    }
    ids = *std::move(encoded);
  }
  return json::object{{"tokens", json::array(ids.begin(), ids.end())},
                      {"count", static_cast<int64_t>(ids.size())},
                      {"max_model_len", options_.model.limits.context}};
}

absl::StatusOr<Json> ApiHandler::Detokenize(const Json& body) const {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  MILLRACE_RETURN_IF_ERROR(CheckModel(reader));
  const model::Tokenizer* tokenizer = options_.model.tokenizer;
  if (tokenizer == nullptr) {
    return ParamError("tokens", "this model has no tokenizer");
  }
  const Json* tokens = reader.Find("tokens");
  if (tokens == nullptr || !tokens->is_array()) {
    return ParamError("tokens", "must be a list of token ids");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      TokenIds(tokens->get_array(), tokenizer->vocab_size(), "tokens"));
  MILLRACE_ASSIGN_OR_RETURN(const auto skip,
                            reader.Bool("skip_special_tokens"));
  absl::StatusOr<std::string> text =
      tokenizer->Decode(ids, skip.value_or(false));
  if (!text.ok()) {
    return ParamError("tokens", WhatOf(text.status()));
  }
  return json::object{{"prompt", WellFormed(*text)}};
}

}  // namespace millrace::coordinator
