// Reads the `pre_tokenizer` of a tokenizer.json.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/tokenizer/char_class.h"
#include "model/tokenizer/component_json.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

using Behavior = PreTokenizer::Behavior;

absl::StatusOr<Behavior> BehaviorOf(const JsonObject& object) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string name, object.String("behavior"));
  if (name == "Removed") {
    return Behavior::kRemoved;
  }
  if (name == "Isolated") {
    return Behavior::kIsolated;
  }
  if (name == "MergedWithPrevious") {
    return Behavior::kMergedWithPrevious;
  }
  if (name == "MergedWithNext") {
    return Behavior::kMergedWithNext;
  }
  if (name == "Contiguous") {
    return Behavior::kContiguous;
  }
  return object.ErrorAt("behavior",
                        absl::StrCat("'", Printable(name), "' is not known"));
}

}  // namespace

absl::Status PreTokenizer::AddJson(const Json& value, absl::string_view file,
                                   absl::string_view path) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject object,
                            JsonObject::From(value, file, path));
  MILLRACE_ASSIGN_OR_RETURN(const std::string type, object.String("type"));
  if (type == "Sequence") {
    return ForEachComponent(object, "pretokenizers", path,
                            [&](const Json& part, absl::string_view where) {
                              return AddJson(part, file, where);
                            });
  }
  if (type == "Split") {
    MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Pattern> pattern,
                              PatternFromJson(object, "pattern", file));
    MILLRACE_ASSIGN_OR_RETURN(const Behavior behavior, BehaviorOf(object));
    MILLRACE_ASSIGN_OR_RETURN(const bool invert,
                              object.BoolOr("invert", false));
    AddSplit(std::move(pattern), behavior, invert);
    return absl::OkStatus();
  }
  if (type == "ByteLevel") {
    MILLRACE_ASSIGN_OR_RETURN(const bool prefix,
                              object.BoolOr("add_prefix_space", true));
    MILLRACE_ASSIGN_OR_RETURN(const bool regex,
                              object.BoolOr("use_regex", true));
    AddByteLevel(prefix, regex);
    return absl::OkStatus();
  }
  if (type == "Digits") {
    MILLRACE_ASSIGN_OR_RETURN(const bool individual,
                              object.BoolOr("individual_digits", false));
    AddSplit(RulesPattern(RulesOf(KnownPattern::kOneDigit)),
             individual ? Behavior::kIsolated : Behavior::kContiguous, false);
    return absl::OkStatus();
  }
  if (type == "Metaspace") {
    return AddMetaspace(object);
  }
  return UnsupportedComponent(object, type);
}

absl::Status PreTokenizer::AddMetaspace(const JsonObject& object) {
  Step step{.kind = Kind::kMetaspace};
  MILLRACE_ASSIGN_OR_RETURN(step.replacement,
                            object.StringOr("replacement", "\u2581"));
  if (step.replacement.empty() ||
      CodePointAt(step.replacement, 0).bytes != step.replacement.size()) {
    return object.ErrorAt("replacement", "must be one character");
  }
  // Older files have add_prefix_space in place of the scheme.
  MILLRACE_ASSIGN_OR_RETURN(const bool legacy,
                            object.BoolOr("add_prefix_space", true));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::string scheme,
      object.StringOr("prepend_scheme", legacy ? "always" : "never"));
  if (scheme == "always") {
    step.prepend = Prepend::kAlways;
  } else if (scheme == "first") {
    step.prepend = Prepend::kFirst;
  } else if (scheme == "never") {
    step.prepend = Prepend::kNever;
  } else {
    return object.ErrorAt("prepend_scheme", "must be always, first or never");
  }
  MILLRACE_ASSIGN_OR_RETURN(const bool split, object.BoolOr("split", true));
  std::unique_ptr<Pattern> pattern = LiteralPattern(step.replacement);
  steps_.push_back(std::move(step));
  if (split) {
    AddSplit(std::move(pattern), Behavior::kMergedWithNext, false);
  }
  return absl::OkStatus();
}

}  // namespace millrace::model
