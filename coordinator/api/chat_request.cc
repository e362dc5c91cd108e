#include "coordinator/api/chat_request.h"

#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "boost/json/string.hpp"
#include "coordinator/api/api_error.h"
#include "model/chat/prompt.h"

namespace millrace::coordinator {
namespace {

namespace json = boost::json;

constexpr std::array<absl::string_view, 5> kRoles = {
    "system", "developer", "user", "assistant", "tool"};
constexpr std::array<absl::string_view, 6> kEfforts = {
    "none", "minimal", "low", "medium", "high", "xhigh"};
// Variables that are made here and may not come from a client.
constexpr std::array<absl::string_view, 8> kOwnVariables = {
    "messages",
    "tools",
    "documents",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
    "continue_final_message",
    "reasoning_effort"};

json::string_view View(absl::string_view text) {
  return {text.data(), text.size()};
}

absl::Status ReadPart(const Json& part, const std::string& path,
                      std::string& text) {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader,
                            FieldReader::From(part, path));
  MILLRACE_ASSIGN_OR_RETURN(const auto type, reader.String("type"));
  if (!type.has_value()) {
    return reader.Error("type", "is missing in this content part");
  }
  if (*type == "image_url" || *type == "input_image") {
    return reader.Error("type",
                        "this model has no vision: image parts cannot "
                        "be used");
  }
  if (*type != "text") {
    return reader.Error("type", "content parts must be of type text");
  }
  MILLRACE_ASSIGN_OR_RETURN(const auto piece, reader.String("text"));
  if (!piece.has_value()) {
    return reader.Error("text", "is missing in this content part");
  }
  absl::StrAppend(&text, *piece);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadContent(const Json& content,
                                        const std::string& path) {
  if (content.is_string()) {
    return std::string(TextOf(content.get_string()));
  }
  if (!content.is_array() || content.get_array().empty()) {
    return ParamError(path, "must be a string or a list of text parts");
  }
  std::string text;
  const json::array& parts = content.get_array();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) {
      text.push_back('\n');
    }
    MILLRACE_RETURN_IF_ERROR(
        ReadPart(parts[i], absl::StrCat(path, "[", i, "]"), text));
  }
  return text;
}

absl::StatusOr<json::object> ReadMessage(const Json& message,
                                         const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader,
                            FieldReader::From(message, path));
  MILLRACE_ASSIGN_OR_RETURN(auto role, reader.String("role"));
  if (!role.has_value()) {
    return reader.Error("role", "is missing");
  }
  if (!absl::c_linear_search(kRoles, *role)) {
    return reader.Error("role",
                        "must be system, developer, user, assistant or tool");
  }
  if (*role == "developer") {
    role = "system";
  }
  for (const absl::string_view name :
       {"tool_calls", "function_call", "audio"}) {
    const Json* value = reader.Find(name);
    if (value != nullptr &&
        !(value->is_array() && value->get_array().empty())) {
      return reader.Error(name, "is not supported by this version");
    }
  }
  json::object out;
  out["role"] = *role;
  const Json* content = reader.Find("content");
  if (content != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                              ReadContent(*content, reader.NameOf("content")));
    out["content"] = text;
  } else if (*role == "assistant") {
    out["content"] = "";
  } else {
    return reader.Error("content", "is missing");
  }
  for (const absl::string_view name :
       {"name", "tool_call_id", "reasoning_content", "reasoning"}) {
    MILLRACE_ASSIGN_OR_RETURN(const auto text, reader.String(name));
    if (text.has_value()) {
      out[View(name)] = *text;
    }
  }
  return out;
}

absl::Status ReadTemplateFields(const FieldReader& reader,
                                ChatRequest& request) {
  json::object& input = request.input.get_object();
  MILLRACE_ASSIGN_OR_RETURN(const auto generation,
                            reader.Bool("add_generation_prompt"));
  MILLRACE_ASSIGN_OR_RETURN(const auto continued,
                            reader.Bool("continue_final_message"));
  request.continue_final = continued.value_or(false);
  if (request.continue_final) {
    if (generation.value_or(false)) {
      return reader.Error("continue_final_message",
                          "cannot be true beside add_generation_prompt true");
    }
    const json::object& last =
        input["messages"].get_array().back().get_object();
    if (last.at("role") != "assistant") {
      return reader.Error("continue_final_message",
                          "needs an assistant message at the end");
    }
    // Where an empty text stands in the prompt cannot be told, and the text
    // before it, which would be continued instead, is somebody else's.
    if (absl::StripAsciiWhitespace(TextOf(last.at("content").get_string()))
            .empty()) {
      return reader.Error("continue_final_message",
                          "needs text in the last message: leave that message "
                          "out and use add_generation_prompt instead");
    }
  }
  input["add_generation_prompt"] =
      generation.value_or(true) && !request.continue_final;
  MILLRACE_ASSIGN_OR_RETURN(const auto effort,
                            reader.String("reasoning_effort"));
  if (effort.has_value()) {
    if (!absl::c_linear_search(kEfforts, *effort)) {
      return reader.Error("reasoning_effort",
                          "must be none, minimal, low, medium, high or xhigh");
    }
    input["reasoning_effort"] = *effort;
  }
  const Json* variables = reader.Find("chat_template_kwargs");
  if (variables == nullptr) {
    return absl::OkStatus();
  }
  if (!variables->is_object()) {
    return reader.Error("chat_template_kwargs", "must be an object");
  }
  for (const auto& member : variables->get_object()) {
    const absl::string_view name(member.key().data(), member.key().size());
    if (absl::c_linear_search(kOwnVariables, name)) {
      return reader.Error(
          "chat_template_kwargs",
          absl::StrCat("may not set ", name, ", which has a field of its own"));
    }
    input[member.key()] = member.value();
  }
  return absl::OkStatus();
}

// Cuts the rendered prompt behind the text of its last message.
absl::Status CutBehind(absl::string_view content,
                       std::vector<model::TextSegment>& segments) {
  content = absl::StripAsciiWhitespace(content);
  for (size_t i = segments.size(); i-- > 0;) {
    const size_t at = segments[i].text.rfind(std::string(content));
    if (segments[i].mode == model::AddedTokenMode::kNone &&
        at != std::string::npos) {
      segments[i].text.resize(at + content.size());
      segments.resize(i + 1);
      return absl::OkStatus();
    }
  }
  return ParamError("continue_final_message",
                    "this model's template changes the last message, so that "
                    "it cannot be continued");
}

}  // namespace

absl::Status ReadMessages(const FieldReader& reader, ChatRequest& request) {
  const Json* messages = reader.Find("messages");
  if (messages == nullptr || !messages->is_array() ||
      messages->get_array().empty() ||
      static_cast<int64_t>(messages->get_array().size()) > kMessagesMax) {
    return reader.Error("messages", absl::StrCat("must be a list of 1 to ",
                                                 kMessagesMax, " messages"));
  }
  json::array out;
  const json::array& list = messages->get_array();
  out.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(
        json::object message,
        ReadMessage(list[i],
                    absl::StrCat(reader.NameOf("messages"), "[", i, "]")));
    out.push_back(std::move(message));
  }
  request.input = json::object{{"messages", std::move(out)}};
  return ReadTemplateFields(reader, request);
}

absl::StatusOr<ChatRequest> ReadChatRequest(const Json& body,
                                            const ModelLimits& limits) {
  MILLRACE_ASSIGN_OR_RETURN(const FieldReader reader, FieldReader::From(body));
  ChatRequest request;
  MILLRACE_RETURN_IF_ERROR(ReadMessages(reader, request));
  MILLRACE_RETURN_IF_ERROR(
      ReadGenerationFields(reader, limits, request.fields));
  MILLRACE_RETURN_IF_ERROR(
      ReadTokensMax(reader, "max_tokens", 1, request.fields));
  MILLRACE_RETURN_IF_ERROR(
      ReadTokensMax(reader, "max_completion_tokens", 1, request.fields));
  MILLRACE_ASSIGN_OR_RETURN(const auto logprobs, reader.Bool("logprobs"));
  request.want_logprobs = logprobs.value_or(false);
  MILLRACE_ASSIGN_OR_RETURN(const auto top,
                            reader.Integer("top_logprobs", 0, kTopLogprobsMax));
  if (top.has_value() && !request.want_logprobs) {
    return reader.Error("top_logprobs", "needs logprobs true");
  }
  request.top_logprobs = static_cast<int32_t>(top.value_or(0));
  MILLRACE_RETURN_IF_ERROR(RefuseUnsupported(reader));
  return request;
}

absl::StatusOr<std::vector<int32_t>> ChatPromptMaker::Make(
    const ChatRequest& request, absl::Time now) const {
  if (tokenizer == nullptr) {
    return ParamError("messages",
                      "this model has no tokenizer: send token ids "
                      "to /v1/completions");
  }
  if (chat_template == nullptr) {
    return ParamError("messages",
                      "this model has no chat template: send its "
                      "own format to /v1/completions");
  }
  Json input = request.input;
  const std::string last(TextOf(
      input.at("messages").get_array().back().at("content").get_string()));
  model::CompleteInput(bos_text, eos_text, input);
  absl::StatusOr<std::vector<model::TextSegment>> segments =
      chat_template->Render(input, now);
  if (!segments.ok()) {
    return ParamError("messages",
                      absl::StrCat("the model's chat template refuses them: ",
                                   Printable(WhatOf(segments.status()), 400)));
  }
  if (request.continue_final) {
    MILLRACE_RETURN_IF_ERROR(CutBehind(last, *segments));
  }
  if (parse_special) {
    return tokenizer->Encode(model::JoinSegments(*segments),
                             model::AddedTokenMode::kParseSpecial,
                             /*add_special=*/false);
  }
  return tokenizer->EncodeSegments(*segments);
}

}  // namespace millrace::coordinator
