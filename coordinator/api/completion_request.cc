#include "coordinator/api/completion_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/string.hpp"
#include "coordinator/api/api_error.h"
#include "coordinator/api/field_reader.h"

namespace millrace::coordinator {
namespace {

namespace json = boost::json;

constexpr absl::string_view kName = "prompt";
// As chat's top_logprobs; the published API stops at 5.
constexpr int64_t kLogprobsMax = 20;

absl::Status WrongPrompt(const FieldReader& reader) {
  return reader.Error(
      kName, absl::StrCat("must be a string, a list of 1 to ", kSequencesMax,
                          " strings, a list of token ids, or a list "
                          "of such lists, none empty"));
}

absl::Status ReadPromptList(const FieldReader& reader, const json::array& list,
                            int64_t vocab_size, std::vector<TextPrompt>& out) {
  if (list.empty()) {
    return WrongPrompt(reader);
  }
  const json::kind kind = list[0].kind();
  const bool strings = kind == json::kind::string;
  const bool lists = kind == json::kind::array;
  if (!strings && !lists) {
    if (!list[0].is_number()) {
      return WrongPrompt(reader);
    }
    MILLRACE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                              TokenIds(list, vocab_size, reader.NameOf(kName)));
    out.emplace_back(std::move(ids));
    return absl::OkStatus();
  }
  if (static_cast<int64_t>(list.size()) > kSequencesMax) {
    return WrongPrompt(reader);
  }
  for (const Json& item : list) {
    if (item.kind() != kind || (lists && item.get_array().empty())) {
      return WrongPrompt(reader);
    }
    if (strings) {
      out.emplace_back(std::string(TextOf(item.get_string())));
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(
        std::vector<int32_t> ids,
        TokenIds(item.get_array(), vocab_size, reader.NameOf(kName)));
    out.emplace_back(std::move(ids));
  }
  return absl::OkStatus();
}

absl::Status ReadPrompt(const FieldReader& reader, int64_t vocab_size,
                        std::vector<TextPrompt>& out) {
  const Json* prompt = reader.Find(kName);
  if (prompt == nullptr) {
    return reader.Error(kName, "is missing");
  }
  if (prompt->is_string()) {
    out.emplace_back(std::string(TextOf(prompt->get_string())));
    return absl::OkStatus();
  }
  if (prompt->is_array()) {
    return ReadPromptList(reader, prompt->get_array(), vocab_size, out);
  }
  return WrongPrompt(reader);
}

}  // namespace

absl::StatusOr<CompletionRequest> ReadCompletionRequest(
    const Json& body, const ModelLimits& limits) {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  CompletionRequest request;
  MILLRACE_RETURN_IF_ERROR(
      ReadPrompt(reader, limits.vocab_size, request.prompts));
  MILLRACE_RETURN_IF_ERROR(
      ReadGenerationFields(reader, limits, request.fields));
  MILLRACE_ASSIGN_OR_RETURN(const auto echo, reader.Bool("echo"));
  request.echo = echo.value_or(false);
  MILLRACE_RETURN_IF_ERROR(ReadTokensMax(reader, "max_tokens",
                                         request.echo ? 0 : 1, request.fields));
  MILLRACE_ASSIGN_OR_RETURN(const auto logprobs,
                            reader.Integer("logprobs", 0, kLogprobsMax));
  request.want_logprobs = logprobs.has_value();
  request.top_logprobs = static_cast<int32_t>(logprobs.value_or(0));
  MILLRACE_ASSIGN_OR_RETURN(const auto best_of,
                            reader.Integer("best_of", 1, kSequencesMax));
  if (best_of.has_value() && *best_of != request.fields.n) {
    return reader.Error("best_of", "other than n is not supported");
  }
  if (static_cast<int64_t>(request.prompts.size()) * request.fields.n >
      kSequencesMax) {
    return reader.Error(
        "n", absl::StrCat("prompts times n may be at most ", kSequencesMax));
  }
  MILLRACE_RETURN_IF_ERROR(RefuseUnsupported(reader));
  return request;
}

absl::StatusOr<std::vector<int32_t>> PromptIds(
    const TextPrompt& prompt, const model::Tokenizer* tokenizer) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    return *ids;
  }
  if (tokenizer == nullptr) {
    return ParamError(kName,
                      "this model has no tokenizer: send a list of token ids");
  }
  absl::StatusOr<std::vector<int32_t>> ids = tokenizer->Encode(
      std::get<std::string>(prompt), model::AddedTokenMode::kParseSpecial,
      /*add_special=*/true);
  if (!ids.ok()) {
    return ParamError(kName, WhatOf(ids.status()));
  }
  if (ids->empty()) {
    return ParamError(kName, "must not be empty");
  }
  return ids;
}

}  // namespace millrace::coordinator
