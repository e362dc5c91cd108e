#include "model/tokenizer/template_processor.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "model/tokenizer/component_json.h"
#include "model/tokenizer/vocabulary.h"

namespace millrace::model {
namespace {

constexpr size_t kTemplateIdsMax = 64;

absl::Status AppendIds(const JsonObject& specials, const std::string& name,
                       std::vector<TokenId>* out) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject special, specials.Object(name));
  const Json* ids = special.Find("ids");
  if (ids == nullptr || !ids->is_array() ||
      ids->get_array().size() > kTemplateIdsMax) {
    return special.ErrorAt("ids", "must be a short list of token ids");
  }
  for (const Json& id : ids->get_array()) {
    if (!id.is_int64() || id.get_int64() < 0 ||
        id.get_int64() >= kVocabularyMax) {
      return special.ErrorAt("ids", "has an id out of range");
    }
    out->push_back(static_cast<TokenId>(id.get_int64()));
  }
  return absl::OkStatus();
}

absl::Status AddTemplate(const JsonObject& object, absl::string_view path,
                         absl::string_view file, Surroundings* out) {
  std::vector<TokenId> front;
  std::vector<TokenId> back;
  bool text_seen = false;
  const auto add = [&](const Json& value,
                       absl::string_view where) -> absl::Status {
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject item,
                              JsonObject::From(value, file, where));
    if (item.Has("Sequence")) {
      if (std::exchange(text_seen, true)) {
        return item.ErrorAt("Sequence", "may stand there once only");
      }
      return absl::OkStatus();
    }
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject special,
                              item.Object("SpecialToken"));
    MILLRACE_ASSIGN_OR_RETURN(const std::string name, special.String("id"));
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject specials,
                              object.Object("special_tokens"));
    return AppendIds(specials, name, text_seen ? &back : &front);
  };
  MILLRACE_RETURN_IF_ERROR(ForEachComponent(object, "single", path, add));
  if (!text_seen) {
    return object.ErrorAt("single", "has no place for the text");
  }
  out->front.insert(out->front.begin(), front.begin(), front.end());
  out->back.insert(out->back.end(), back.begin(), back.end());
  return absl::OkStatus();
}

// ["[CLS]", 101]
absl::StatusOr<TokenId> IdOfPair(const JsonObject& object,
                                 absl::string_view key) {
  const Json* pair = object.Find(key);
  if (pair == nullptr || !pair->is_array() || pair->get_array().size() != 2 ||
      !pair->get_array()[1].is_int64() ||
      pair->get_array()[1].get_int64() < 0 ||
      pair->get_array()[1].get_int64() >= kVocabularyMax) {
    return object.ErrorAt(key, "must be a token and its id");
  }
  return static_cast<TokenId>(pair->get_array()[1].get_int64());
}

absl::Status AddProcessor(const Json& value, absl::string_view file,
                          absl::string_view path, Surroundings* out) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject object,
                            JsonObject::From(value, file, path));
  MILLRACE_ASSIGN_OR_RETURN(const std::string type, object.String("type"));
  if (type == "Sequence") {
    return ForEachComponent(object, "processors", path,
                            [&](const Json& part, absl::string_view where) {
                              return AddProcessor(part, file, where, out);
                            });
  }
  if (type == "TemplateProcessing") {
    return AddTemplate(object, path, file, out);
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    MILLRACE_ASSIGN_OR_RETURN(const TokenId front, IdOfPair(object, "cls"));
    MILLRACE_ASSIGN_OR_RETURN(const TokenId back, IdOfPair(object, "sep"));
    out->front.insert(out->front.begin(), front);
    out->back.push_back(back);
    return absl::OkStatus();
  }
  if (type == "ByteLevel") {
    return absl::OkStatus();
  }
  return UnsupportedComponent(object, type);
}

}  // namespace

absl::StatusOr<Surroundings> SurroundingsFromJson(const Json* value,
                                                  absl::string_view file) {
  Surroundings out;
  if (value != nullptr) {
    MILLRACE_RETURN_IF_ERROR(
        AddProcessor(*value, file, "post_processor", &out));
  }
  return out;
}

}  // namespace millrace::model
