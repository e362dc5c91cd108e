#include "coordinator/api/answer_format.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "coordinator/api/utf8.h"

namespace millrace::coordinator {
namespace {

namespace json = boost::json;

// JSON has no infinity; the published API writes this for "never".
constexpr double kLogprobMin = -9999.0;

double Finite(float logprob) {
  return std::isfinite(logprob) ? std::max<double>(logprob, kLogprobMin)
                                : kLogprobMin;
}

json::array BytesOf(absl::string_view bytes) {
  json::array out;
  out.reserve(bytes.size());
  for (const char byte : bytes) {
    out.push_back(static_cast<int64_t>(static_cast<uint8_t>(byte)));
  }
  return out;
}

// A key that is unique also for parts of characters.
std::string TokenKey(absl::string_view bytes) {
  if (IsWellFormed(bytes)) {
    return std::string(bytes);
  }
  std::string out = "bytes:";
  for (const char byte : bytes) {
    absl::StrAppend(&out, "\\x",
                    absl::Hex(static_cast<uint8_t>(byte), absl::kZeroPad2));
  }
  return out;
}

json::object UsageJson(const AnswerUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

}  // namespace

AnswerFormat::AnswerFormat(AnswerHead head, const model::Tokenizer* tokenizer)
    : head_(std::move(head)), tokenizer_(tokenizer) {}

std::string AnswerFormat::TokenText(int32_t token) const {
  return tokenizer_ == nullptr ? absl::StrCat("<", token, ">")
                               : tokenizer_->TokenBytes(token);
}

Json AnswerFormat::ChatLogprobs(const ChoicePart& part) const {
  json::array content;
  for (const TokenScore& score : part.scores) {
    json::array top;
    for (const transport::TopToken& entry : score.top) {
      if (static_cast<int32_t>(top.size()) == part.top_logprobs) {
        break;
      }
      const std::string bytes = TokenText(entry.token);
      top.push_back(json::object{{"token", WellFormed(bytes)},
                                 {"logprob", Finite(entry.logprob)},
                                 {"bytes", BytesOf(bytes)}});
    }
    content.push_back(
        json::object{{"token", WellFormed(TokenText(score.token))},
                     {"logprob", Finite(score.logprob)},
                     {"bytes", BytesOf(score.bytes)},
                     {"top_logprobs", std::move(top)}});
  }
  return json::object{{"content", std::move(content)}, {"refusal", nullptr}};
}

Json AnswerFormat::TextLogprobs(const ChoicePart& part) const {
  json::array tokens;
  json::array logprobs;
  json::array tops;
  json::array offsets;
  int64_t offset = part.text_offset;
  for (const TokenScore& score : part.scores) {
    tokens.push_back(json::string(score.text));
    offsets.push_back(offset);
    offset += CodePoints(score.text);
    if (!score.has_logprob) {
      logprobs.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    logprobs.push_back(Finite(score.logprob));
    json::object top;
    int32_t count = 0;
    for (const transport::TopToken& entry : score.top) {
      if (count++ < part.top_logprobs) {
        top[TokenKey(TokenText(entry.token))] = Finite(entry.logprob);
      }
    }
    if (part.top_logprobs > 0) {
      top[TokenKey(TokenText(score.token))] = Finite(score.logprob);
    }
    tops.push_back(std::move(top));
  }
  return json::object{{"tokens", std::move(tokens)},
                      {"token_logprobs", std::move(logprobs)},
                      {"top_logprobs", std::move(tops)},
                      {"text_offset", std::move(offsets)}};
}

json::object AnswerFormat::Base(bool chunk) const {
  const absl::string_view object = !head_.chat ? "text_completion"
                                   : chunk     ? "chat.completion.chunk"
                                               : "chat.completion";
  return {{"id", head_.id},
          {"object", json::string_view(object.data(), object.size())},
          {"created", head_.created},
          {"model", head_.model},
          {"system_fingerprint", head_.fingerprint}};
}

json::object AnswerFormat::Choice(const ChoicePart& part, bool chunk) const {
  json::object out{{"index", part.index}};
  if (!head_.chat) {
    out["text"] = part.text;
  } else if (!chunk) {
    out["message"] = json::object{
        {"role", "assistant"}, {"content", part.text}, {"refusal", nullptr}};
  } else {
    json::object delta;
    if (part.with_role) {
      delta["role"] = "assistant";
    }
    if (part.with_role || !part.text.empty()) {
      delta["content"] = part.text;
    }
    out["delta"] = std::move(delta);
  }
  out["logprobs"] = nullptr;
  if (part.with_logprobs) {
    out["logprobs"] = head_.chat ? ChatLogprobs(part) : TextLogprobs(part);
  }
  if (part.token_ids != nullptr) {
    out["token_ids"] =
        json::array(part.token_ids->begin(), part.token_ids->end());
  }
  out["finish_reason"] = nullptr;
  if (!part.finish_reason.empty()) {
    out["finish_reason"] =
        json::string_view(part.finish_reason.data(), part.finish_reason.size());
  }
  return out;
}

Json AnswerFormat::Whole(const std::vector<ChoicePart>& choices,
                         const AnswerUsage& usage) const {
  json::object out = Base(/*chunk=*/false);
  json::array list;
  for (const ChoicePart& part : choices) {
    list.push_back(Choice(part, /*chunk=*/false));
  }
  out["choices"] = std::move(list);
  out["usage"] = UsageJson(usage);
  return out;
}

Json AnswerFormat::Chunk(const ChoicePart& choice, bool usage_key) const {
  json::object out = Base(/*chunk=*/true);
  out["choices"] = json::array{Choice(choice, /*chunk=*/true)};
  if (usage_key) {
    out["usage"] = nullptr;
  }
  return out;
}

Json AnswerFormat::UsageChunk(const AnswerUsage& usage) const {
  json::object out = Base(/*chunk=*/true);
  out["choices"] = json::array();
  out["usage"] = UsageJson(usage);
  return out;
}

std::string SseData(const Json& value) {
  return absl::StrCat("data: ", WriteJson(value), "\n\n");
}

}  // namespace millrace::coordinator
