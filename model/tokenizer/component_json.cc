#include "model/tokenizer/component_json.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"

namespace millrace::model {

absl::Status ForEachComponent(
    const JsonObject& object, absl::string_view key, absl::string_view path,
    const std::function<absl::Status(const Json&, absl::string_view)>& add) {
  const Json* list = object.Find(key);
  if (list == nullptr || !list->is_array() ||
      list->get_array().size() > kComponentsMax) {
    return object.ErrorAt(key, absl::StrCat("must be a list of at most ",
                                            kComponentsMax, " components"));
  }
  size_t index = 0;
  for (const Json& part : list->get_array()) {
    MILLRACE_RETURN_IF_ERROR(
        add(part, absl::StrCat(path, ".", key, "[", index++, "]")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Pattern>> PatternFromJson(
    const JsonObject& object, absl::string_view key, absl::string_view file) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject pattern, object.Object(key));
  if (pattern.Has("String")) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text, pattern.String("String"));
    return LiteralPattern(text);
  }
  if (pattern.Has("Regex")) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string regex, pattern.String("Regex"));
    return RegexPattern(regex, file);
  }
  return object.ErrorAt(key, "must have a String or a Regex");
}

absl::Status UnsupportedComponent(const JsonObject& object,
                                  absl::string_view type) {
  return WithHint(
      object.ErrorAt("type", absl::StrCat("'", Printable(type),
                                          "' is not supported in this "
                                          "version")),
      "use a model whose tokenizer is byte-level or SentencePiece BPE");
}

}  // namespace millrace::model
