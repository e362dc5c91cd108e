// Reads the `decoder` of a tokenizer.json.
#include <string>
#include <utility>

#include "base/error.h"
#include "base/status_macros.h"
#include "model/tokenizer/component_json.h"
#include "model/tokenizer/decoder.h"

namespace millrace::model {

absl::Status Decoder::AddJson(const Json& value, absl::string_view file,
                              absl::string_view path) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject object,
                            JsonObject::From(value, file, path));
  MILLRACE_ASSIGN_OR_RETURN(const std::string type, object.String("type"));
  if (type == "Sequence") {
    return ForEachComponent(object, "decoders", path,
                            [&](const Json& part, absl::string_view where) {
                              return AddJson(part, file, where);
                            });
  }
  MILLRACE_RETURN_IF_ERROR(AddJsonStep(object, type));
  const Step& step = steps_.back();
  if (step.whole_text && step.kind != Kind::kFuse &&
      step.kind != Kind::kStrip) {
    return object.ErrorAt("type",
                          "may not stand behind Fuse or ByteLevel, where it "
                          "could match across tokens");
  }
  return absl::OkStatus();
}

absl::Status Decoder::AddJsonStep(const JsonObject& object,
                                  const std::string& type) {
  if (type == "ByteLevel") {
    AddByteLevel();
  } else if (type == "ByteFallback") {
    AddByteFallback();
  } else if (type == "Fuse") {
    AddFuse();
  } else if (type == "Replace") {
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject pattern,
                              object.Object("pattern"));
    MILLRACE_ASSIGN_OR_RETURN(const std::string from, pattern.String("String"));
    MILLRACE_ASSIGN_OR_RETURN(const std::string to, object.String("content"));
    AddReplace(from, to);
  } else if (type == "Strip") {
    MILLRACE_ASSIGN_OR_RETURN(const std::string content,
                              object.String("content"));
    MILLRACE_ASSIGN_OR_RETURN(const int64_t start,
                              object.IntegerOr("start", 0, 1 << 20, 0));
    MILLRACE_ASSIGN_OR_RETURN(const int64_t stop,
                              object.IntegerOr("stop", 0, 1 << 20, 0));
    if (content.empty() || CodePointAt(content, 0).bytes != content.size()) {
      return object.ErrorAt("content", "must be one character");
    }
    if (stop != 0) {
      return object.ErrorAt("stop", "other than 0 is not supported");
    }
    AddStrip(content, start);
  } else if (type == "Metaspace") {
    Step step{.kind = Kind::kMetaspace};
    MILLRACE_ASSIGN_OR_RETURN(step.from,
                              object.StringOr("replacement", "\u2581"));
    MILLRACE_ASSIGN_OR_RETURN(const bool legacy,
                              object.BoolOr("add_prefix_space", true));
    MILLRACE_ASSIGN_OR_RETURN(
        const std::string scheme,
        object.StringOr("prepend_scheme", legacy ? "always" : "never"));
    step.drop_first = scheme != "never";
    Add(std::move(step));
  } else {
    return UnsupportedComponent(object, type);
  }
  return absl::OkStatus();
}

}  // namespace millrace::model
