#include "coordinator/api/request_planner.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "coordinator/api/api_error.h"
#include "coordinator/api/utf8.h"

namespace millrace::coordinator {
namespace {

namespace json = boost::json;

// The published default of text completions.
constexpr int64_t kTextTokensDefault = 16;

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

RequestPlanner::RequestPlanner(const ServedModel& model,
                               std::string fingerprint, const Clock& clock)
    : model_(model),
      fingerprint_(std::move(fingerprint)),
      clock_(clock),
      chat_prompts_{.tokenizer = model.tokenizer,
                    .chat_template = model.chat_template,
                    .bos_text = model.bos_text,
                    .eos_text = model.eos_text,
                    .parse_special = model.parse_special},
      generator_(RandomSeed()) {}

absl::Status RequestPlanner::CheckModel(const FieldReader& reader) const {
  MILLRACE_ASSIGN_OR_RETURN(const auto name, reader.String("model"));
  if (name.has_value() && *name != model_.name) {
    return ModelNotFound(*name, model_.name);
  }
  return absl::OkStatus();
}

uint64_t RequestPlanner::Draw() {
  MutexLock lock(mutex_);
  return generator_();
}

GenerationPlan RequestPlanner::NewPlan(const GenerationFields& fields,
                                       bool chat) {
  const ServedModel& model = model_;
  GenerationPlan plan;
  plan.head = {.chat = chat,
               .id = absl::StrFormat("%s-%016x%08x", chat ? "chatcmpl" : "cmpl",
                                     Draw(), static_cast<uint32_t>(Draw())),
               .created = absl::ToUnixSeconds(clock_.Now()),
               .model = model.name,
               .fingerprint = fingerprint_};
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

GenerateRequest RequestPlanner::MakeRequest(const GenerationFields& fields,
                                            uint64_t seed,
                                            int64_t choice) const {
  GenerateRequest request;
  request.sampling = fields.sampling;
  request.sampling.seed = seed;
  request.sampling.choice = static_cast<uint32_t>(choice);
  request.stop_tokens = fields.stop_token_ids;
  if (!fields.ignore_eos) {
    request.stop_tokens.insert(request.stop_tokens.end(),
                               model_.end_tokens.begin(),
                               model_.end_tokens.end());
  }
  return request;
}

absl::StatusOr<GenerationPlan> RequestPlanner::PlanChat(const Json& body) {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  MILLRACE_RETURN_IF_ERROR(CheckModel(reader));
  const ModelLimits& limits = model_.limits;
  MILLRACE_ASSIGN_OR_RETURN(const ChatRequest chat,
                            ReadChatRequest(body, limits));
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                            chat_prompts_.Make(chat, clock_.Now()));
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

absl::StatusOr<GenerationPlan> RequestPlanner::PlanText(const Json& body) {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  MILLRACE_RETURN_IF_ERROR(CheckModel(reader));
  const ServedModel& model = model_;
  MILLRACE_ASSIGN_OR_RETURN(const CompletionRequest text,
                            ReadCompletionRequest(body, model.limits));
  if (!text.fields.stop.empty() && model.tokenizer == nullptr) {
    return ParamError("stop",
                      "this model has no tokenizer: use stop_token_ids");
  }
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

absl::StatusOr<Json> RequestPlanner::Tokenize(const Json& body) const {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  MILLRACE_RETURN_IF_ERROR(CheckModel(reader));
  const model::Tokenizer* tokenizer = model_.tokenizer;
  if (tokenizer == nullptr) {
    return ParamError("prompt", "this model has no tokenizer");
  }
  std::vector<int32_t> ids;
  if (reader.Has("messages")) {
    ChatRequest chat;
    MILLRACE_RETURN_IF_ERROR(ReadMessages(reader, chat));
    MILLRACE_ASSIGN_OR_RETURN(ids, chat_prompts_.Make(chat, clock_.Now()));
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
                      {"max_model_len", model_.limits.context}};
}

absl::StatusOr<Json> RequestPlanner::Detokenize(const Json& body) const {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  MILLRACE_RETURN_IF_ERROR(CheckModel(reader));
  const model::Tokenizer* tokenizer = model_.tokenizer;
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
