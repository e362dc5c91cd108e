#include "model/tokenizer/normalizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/tokenizer/char_class.h"
#include "model/tokenizer/component_json.h"
#include "model/tokenizer/utf8.h"
#include "unicode/uchar.h"

namespace millrace::model {
namespace {

MarkedText Lowercased(const MarkedText& text) {
  MarkedText out = text.EmptyLike();
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text.text(), at);
    bytes.clear();
    if (c.value == 0x130) {
      bytes = "i\xCC\x87";  // the one letter whose lower case is two
    } else {
      AppendUtf8(
          static_cast<char32_t>(u_tolower(static_cast<UChar32>(c.value))),
          &bytes);
    }
    out.AppendFrom(text, at, at + c.bytes, bytes);
    at += c.bytes;
  }
  return out;
}

MarkedText Stripped(const MarkedText& text, bool left, bool right) {
  const auto space = [&](size_t at) {
    return (ClassOf(CodePointAt(text.text(), at).value) & kSpace) != 0;
  };
  size_t begin = 0;
  size_t end = text.size();
  while (left && begin < end && space(begin)) {
    begin += CodePointAt(text.text(), begin).bytes;
  }
  while (right && end > begin && space(PreviousCodePoint(text.text(), end))) {
    end = PreviousCodePoint(text.text(), end);
  }
  return text.Sub(begin, end);
}

absl::StatusOr<MarkedText> Replaced(const MarkedText& text,
                                    const Pattern& pattern,
                                    absl::string_view content) {
  std::vector<Span> matches;
  MILLRACE_RETURN_IF_ERROR(
      pattern.FindAll(text.text(), {0, text.size()}, &matches));
  if (matches.empty()) {
    return text;
  }
  MarkedText out = text.EmptyLike();
  size_t done = 0;
  for (const Span& match : matches) {
    out.AppendCopy(text, done, match.begin);
    out.AppendFrom(text, match.begin, match.end, content);
    done = match.end;
  }
  out.AppendCopy(text, done, text.size());
  return out;
}

}  // namespace

void Normalizer::AddUnicodeForm(UnicodeForm form) {
  steps_.push_back({.kind = Kind::kForm, .form = form});
}

void Normalizer::AddPrepend(absl::string_view text) {
  steps_.push_back({.kind = Kind::kPrepend, .content = std::string(text)});
}

void Normalizer::AddReplace(std::unique_ptr<Pattern> pattern,
                            absl::string_view content) {
  steps_.push_back({.kind = Kind::kReplace,
                    .content = std::string(content),
                    .pattern = std::move(pattern)});
}

absl::StatusOr<Normalizer> Normalizer::FromJson(const Json* value,
                                                absl::string_view file) {
  Normalizer out;
  if (value != nullptr) {
    MILLRACE_RETURN_IF_ERROR(out.AddJson(*value, file, "normalizer"));
  }
  return out;
}

absl::Status Normalizer::AddJson(const Json& value, absl::string_view file,
                                 absl::string_view path) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject object,
                            JsonObject::From(value, file, path));
  MILLRACE_ASSIGN_OR_RETURN(const std::string type, object.String("type"));
  if (type == "Sequence") {
    return ForEachComponent(object, "normalizers", path,
                            [&](const Json& part, absl::string_view where) {
                              return AddJson(part, file, where);
                            });
  }
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    const bool composed = type.back() == 'C';
    AddUnicodeForm(type.size() == 3
                       ? (composed ? UnicodeForm::kNfc : UnicodeForm::kNfd)
                       : (composed ? UnicodeForm::kNfkc : UnicodeForm::kNfkd));
  } else if (type == "Lowercase") {
    steps_.push_back({.kind = Kind::kLowercase});
  } else if (type == "Prepend") {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text, object.String("prepend"));
    AddPrepend(text);
  } else if (type == "Replace") {
    MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Pattern> pattern,
                              PatternFromJson(object, "pattern", file));
    MILLRACE_ASSIGN_OR_RETURN(const std::string text, object.String("content"));
    AddReplace(std::move(pattern), text);
  } else if (type == "Strip") {
    Step step{.kind = Kind::kStrip};
    MILLRACE_ASSIGN_OR_RETURN(step.left, object.BoolOr("strip_left", true));
    MILLRACE_ASSIGN_OR_RETURN(step.right, object.BoolOr("strip_right", true));
    steps_.push_back(std::move(step));
  } else {
    return UnsupportedComponent(object, type);
  }
  return absl::OkStatus();
}

absl::StatusOr<MarkedText> Normalizer::Run(const Step& step, MarkedText text) {
  switch (step.kind) {
    case Kind::kForm:
      return InUnicodeForm(text, step.form);
    case Kind::kLowercase:
      return Lowercased(text);
    case Kind::kPrepend: {
      MarkedText out = text.EmptyLike();
      out.Append(step.content, text.TrustAt(0));
      out.AppendCopy(text, 0, text.size());
      return out;
    }
    case Kind::kReplace:
      return Replaced(text, *step.pattern, step.content);
    case Kind::kStrip:
      return Stripped(text, step.left, step.right);
  }
  return text;
}

absl::StatusOr<MarkedText> Normalizer::Apply(MarkedText text) const {
  for (const Step& step : steps_) {
    if (text.size() == 0) {
      break;
    }
    MILLRACE_ASSIGN_OR_RETURN(text, Run(step, std::move(text)));
  }
  return text;
}

}  // namespace millrace::model
