#include "model/checkpoint/hf_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"

namespace millrace::model {
namespace {

constexpr int64_t kSmallFileBytesMax = int64_t{1} << 20;
constexpr int64_t kTokenizerConfigBytesMax = int64_t{64} << 20;
constexpr int64_t kTokenizerBytesMax = int64_t{256} << 20;
constexpr int64_t kTemplateBytesMax = int64_t{4} << 20;

// Tokens that end a turn of chat; a configuration may name only the end of
// text as eos.
constexpr const char* kTurnTerminators[] = {"<|eot_id|>", "<|eom_id|>",
                                            "<|im_end|>"};

bool IsTurnTerminator(absl::string_view text) {
  return std::any_of(std::begin(kTurnTerminators), std::end(kTurnTerminators),
                     [&](const char* known) { return text == known; });
}

absl::string_view View(const boost::json::string& text) {
  return {text.data(), text.size()};
}

class HfTextReader {
 public:
  HfTextReader(const std::string& folder, int64_t vocab_size)
      : folder_(folder), vocab_size_(vocab_size) {}

  absl::StatusOr<HfText> Read(const JsonObject& config);

 private:
  [[nodiscard]] std::string Path(const char* name) const {
    return absl::StrCat(folder_, "/", name);
  }
  // Unset when the file is not there.
  absl::StatusOr<std::optional<Json>> ReadJsonFile(const char* name,
                                                   int64_t bytes_max) const;
  absl::Status ReadEos(const JsonObject& object);
  absl::Status ReadBos(const JsonObject& object);
  absl::Status ReadGeneration();
  absl::Status ReadTokenizerConfig();
  absl::Status ReadTemplate(const JsonObject& object);
  absl::StatusOr<std::string> TokenText(const JsonObject& object,
                                        const char* key) const;
  // False when the file has no list of added tokens.
  bool AddTerminatorsOfDecoder(const JsonObject& tokenizer_config);
  void AddTerminatorsOfTokenizer();
  void AddStop(int64_t id) {
    if (id >= 0 && id < vocab_size_) {
      out_.stop_tokens.push_back(static_cast<int32_t>(id));
    }
  }

  const std::string folder_;
  const int64_t vocab_size_;
  bool terminators_known_ = false;
  HfText out_;
};

absl::StatusOr<std::optional<Json>> HfTextReader::ReadJsonFile(
    const char* name, int64_t bytes_max) const {
  const std::string path = Path(name);
  if (!FileExists(path)) {
    return std::optional<Json>();
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, bytes_max));
  MILLRACE_ASSIGN_OR_RETURN(Json json, ParseJson(text, Printable(path, 512)));
  return std::optional<Json>(std::move(json));
}

// An id or a list of ids.
absl::Status HfTextReader::ReadEos(const JsonObject& object) {
  constexpr char kKey[] = "eos_token_id";
  const Json* value = object.Find(kKey);
  if (value == nullptr) {
    return absl::OkStatus();
  }
  const auto add = [&](const Json& id) {
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() >= vocab_size_) {
      return object.ErrorAt(
          kKey, absl::StrCat("must be a token id below vocab_size = ",
                             vocab_size_, ", or a list of such"));
    }
    AddStop(id.get_int64());
    return absl::OkStatus();
  };
  if (!value->is_array()) {
    return add(*value);
  }
  for (const Json& id : value->get_array()) {
    MILLRACE_RETURN_IF_ERROR(add(id));
  }
  return absl::OkStatus();
}

absl::Status HfTextReader::ReadBos(const JsonObject& object) {
  const Json* value = object.Find("bos_token_id");
  if (value != nullptr && value->is_int64() && value->get_int64() >= 0 &&
      value->get_int64() < vocab_size_ && !out_.bos_token.has_value()) {
    out_.bos_token = static_cast<int32_t>(value->get_int64());
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status ReadOptional(absl::StatusOr<T> read, bool has,
                          std::optional<T>& out) {
  if (!has) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(out, std::move(read));
  return absl::OkStatus();
}

absl::Status HfTextReader::ReadGeneration() {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::optional<Json> json,
      ReadJsonFile("generation_config.json", kSmallFileBytesMax));
  if (!json.has_value()) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const JsonObject object,
      JsonObject::From(*json, Printable(Path("generation_config.json"), 512)));
  MILLRACE_RETURN_IF_ERROR(ReadEos(object));
  MILLRACE_RETURN_IF_ERROR(ReadBos(object));
  GenerationDefaults defaults;
  MILLRACE_ASSIGN_OR_RETURN(defaults.do_sample,
                            object.BoolOr("do_sample", false));
  const auto number = [&](const char* key, double low, double high,
                          std::optional<double>& out) {
    return ReadOptional(object.Number(key, low, high), object.Has(key), out);
  };
  MILLRACE_RETURN_IF_ERROR(
      number("temperature", 0, 1000, defaults.temperature));
  MILLRACE_RETURN_IF_ERROR(number("top_p", 0, 1, defaults.top_p));
  MILLRACE_RETURN_IF_ERROR(number("min_p", 0, 1, defaults.min_p));
  MILLRACE_RETURN_IF_ERROR(
      number("repetition_penalty", 1e-3, 1000, defaults.repetition_penalty));
  MILLRACE_RETURN_IF_ERROR(ReadOptional(object.Integer("top_k", -1, INT32_MAX),
                                        object.Has("top_k"), defaults.top_k));
  out_.generation_defaults = defaults;
  return absl::OkStatus();
}

// A string, or an object with `content`.
absl::StatusOr<std::string> HfTextReader::TokenText(const JsonObject& object,
                                                    const char* key) const {
  const Json* value = object.Find(key);
  if (value == nullptr) {
    return std::string();
  }
  if (value->is_object()) {
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject token, object.Object(key));
    return token.String("content");
  }
  return object.String(key);
}

// A template, or a list of {name, template} of which `default` counts.
absl::Status HfTextReader::ReadTemplate(const JsonObject& object) {
  constexpr char kKey[] = "chat_template";
  const Json* value = object.Find(kKey);
  if (value == nullptr) {
    return absl::OkStatus();
  }
  if (value->is_string()) {
    out_.chat_template = std::string(View(value->get_string()));
    return absl::OkStatus();
  }
  if (!value->is_array()) {
    return object.ErrorAt(kKey, "must be a string or a list of templates");
  }
  for (const Json& entry : value->get_array()) {
    MILLRACE_ASSIGN_OR_RETURN(
        const JsonObject named,
        JsonObject::From(entry, Printable(Path("tokenizer_config.json"), 512),
                         kKey));
    MILLRACE_ASSIGN_OR_RETURN(const std::string name, named.String("name"));
    MILLRACE_ASSIGN_OR_RETURN(std::string text, named.String("template"));
    if (name == "default") {
      out_.chat_template = std::move(text);
    }
  }
  return absl::OkStatus();
}

bool HfTextReader::AddTerminatorsOfDecoder(const JsonObject& tokenizer_config) {
  const Json* tokens = tokenizer_config.Find("added_tokens_decoder");
  if (tokens == nullptr || !tokens->is_object()) {
    return false;
  }
  for (const auto& member : tokens->get_object()) {
    int64_t id = 0;
    const Json* content =
        member.value().is_object()
            ? member.value().get_object().if_contains("content")
            : nullptr;
    if (content != nullptr && content->is_string() &&
        IsTurnTerminator(View(content->get_string())) &&
        absl::SimpleAtoi(
            absl::string_view(member.key().data(), member.key().size()), &id)) {
      AddStop(id);
    }
  }
  return !tokens->get_object().empty();
}

absl::Status HfTextReader::ReadTokenizerConfig() {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::optional<Json> json,
      ReadJsonFile("tokenizer_config.json", kTokenizerConfigBytesMax));
  if (!json.has_value()) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const JsonObject object,
      JsonObject::From(*json, Printable(Path("tokenizer_config.json"), 512)));
  MILLRACE_ASSIGN_OR_RETURN(out_.bos_token_text,
                            TokenText(object, "bos_token"));
  MILLRACE_ASSIGN_OR_RETURN(out_.eos_token_text,
                            TokenText(object, "eos_token"));
  terminators_known_ = AddTerminatorsOfDecoder(object);
  return ReadTemplate(object);
}

void HfTextReader::AddTerminatorsOfTokenizer() {
  auto json = ReadJsonFile("tokenizer.json", kTokenizerBytesMax);
  if (!json.ok() || !json->has_value() || !(*json)->is_object()) {
    return;
  }
  const Json* tokens = (*json)->get_object().if_contains("added_tokens");
  if (tokens == nullptr || !tokens->is_array()) {
    return;
  }
  for (const Json& token : tokens->get_array()) {
    if (!token.is_object()) {
      continue;
    }
    const Json* id = token.get_object().if_contains("id");
    const Json* content = token.get_object().if_contains("content");
    if (id != nullptr && id->is_int64() && content != nullptr &&
        content->is_string() && IsTurnTerminator(View(content->get_string()))) {
      AddStop(id->get_int64());
    }
  }
}

absl::StatusOr<HfText> HfTextReader::Read(const JsonObject& config) {
  MILLRACE_RETURN_IF_ERROR(ReadEos(config));
  MILLRACE_RETURN_IF_ERROR(ReadBos(config));
  MILLRACE_RETURN_IF_ERROR(ReadGeneration());
  MILLRACE_RETURN_IF_ERROR(ReadTokenizerConfig());
  const std::string template_path = Path("chat_template.jinja");
  if (FileExists(template_path)) {
    MILLRACE_ASSIGN_OR_RETURN(out_.chat_template,
                              ReadFile(template_path, kTemplateBytesMax));
  }
  const std::string tokenizer_path = Path("tokenizer.json");
  if (FileExists(tokenizer_path)) {
    out_.tokenizer_json_path = tokenizer_path;
    if (!terminators_known_) {
      AddTerminatorsOfTokenizer();
    }
  }
  std::sort(out_.stop_tokens.begin(), out_.stop_tokens.end());
  out_.stop_tokens.erase(
      std::unique(out_.stop_tokens.begin(), out_.stop_tokens.end()),
      out_.stop_tokens.end());
  return std::move(out_);
}

}  // namespace

absl::StatusOr<HfText> ReadHfText(const std::string& folder,
                                  const JsonObject& config,
                                  int64_t vocab_size) {
  return HfTextReader(folder, vocab_size).Read(config);
}

}  // namespace millrace::model
