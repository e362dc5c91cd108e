#include "model/chat/jinja/print.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/callables.h"
#include "model/chat/jinja/number.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

std::string Escaped(char32_t c) {
  if (c <= 0xFF) {
    return absl::StrFormat("\\x%02x", static_cast<uint32_t>(c));
  }
  return c <= 0xFFFF ? absl::StrFormat("\\u%04x", static_cast<uint32_t>(c))
                     : absl::StrFormat("\\U%08x", static_cast<uint32_t>(c));
}

absl::Status AppendTextRepr(Runtime& runtime, const Text& text,
                            TextWriter& writer) {
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text.size()));
  const absl::string_view bytes = text.bytes();
  const bool has_single = bytes.find('\'') != absl::string_view::npos;
  const bool has_double = bytes.find('"') != absl::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  const bool edge = text.AnyUntrusted();
  writer.Append({&quote, 1}, edge);
  int64_t plain = 0;
  for (int64_t at = 0; at < text.size();) {
    const int64_t next = NextPosition(bytes, at);
    const char32_t c = CodePointAt(bytes, at);
    std::string shown;
    if (c == '\n') {
      shown = "\\n";
    } else if (c == '\r') {
      shown = "\\r";
    } else if (c == '\t') {
      shown = "\\t";
    } else if (c == '\\' || c == static_cast<char32_t>(quote)) {
      shown = {'\\', static_cast<char>(c)};
    } else if (!IsPrintable(c)) {
      shown = Escaped(c);
    }
    if (!shown.empty()) {
      writer.Append(text, plain, at);
      writer.Append(shown, text.AnyUntrusted(at, next));
      plain = next;
    }
    at = next;
  }
  writer.Append(text, plain, text.size());
  writer.Append({&quote, 1}, edge);
  return writer.status();
}

absl::Status AppendSequenceRepr(Runtime& runtime,
                                const std::vector<Value>& items,
                                const char* brackets, bool untrusted,
                                TextWriter& writer) {
  writer.Append({brackets, 1}, untrusted);
  for (size_t i = 0; i < items.size(); ++i) {
    writer.Append(i == 0 ? "" : ", ", untrusted);
    MILLRACE_RETURN_IF_ERROR(AppendRepr(runtime, items[i], writer));
  }
  if (brackets[0] == '(' && items.size() == 1) {
    writer.Append(",", untrusted);
  }
  writer.Append({brackets + 1, 1}, untrusted);
  return writer.status();
}

absl::Status AppendDictRepr(Runtime& runtime, const DictObject& dict,
                            TextWriter& writer) {
  writer.Append("{", dict.untrusted);
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    writer.Append(first ? "" : ", ", dict.untrusted);
    first = false;
    MILLRACE_RETURN_IF_ERROR(AppendRepr(runtime, key, writer));
    writer.Append(": ", dict.untrusted);
    MILLRACE_RETURN_IF_ERROR(AppendRepr(runtime, value, writer));
  }
  writer.Append("}", dict.untrusted);
  return writer.status();
}

absl::Status AppendViewRepr(Runtime& runtime, const Value& value,
                            TextWriter& writer) {
  const auto& view = *value.As<ViewObject>();
  writer.Append(view.part == ViewObject::Part::kItems  ? "dict_items("
                : view.part == ViewObject::Part::kKeys ? "dict_keys("
                                                       : "dict_values(",
                false);
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, value));
  MILLRACE_RETURN_IF_ERROR(
      AppendSequenceRepr(runtime, items, "[]", view.dict->untrusted, writer));
  writer.Append(")", false);
  return writer.status();
}

std::string RangeText(const RangeObject& range) {
  return range.step == 1
             ? absl::StrCat("range(", range.start, ", ", range.stop, ")")
             : absl::StrCat("range(", range.start, ", ", range.stop, ", ",
                            range.step, ")");
}

absl::Status AppendOtherRepr(Runtime& runtime, const Value& value,
                             TextWriter& writer) {
  switch (value.kind()) {
    case Kind::kList:
    case Kind::kTuple:
      return AppendSequenceRepr(runtime, value.sequence()->items,
                                value.Is(Kind::kList) ? "[]" : "()",
                                value.sequence()->untrusted, writer);
    case Kind::kDict:
      return AppendDictRepr(runtime, *value.dict(), writer);
    case Kind::kNamespace:
      writer.Append("<Namespace ", false);
      MILLRACE_RETURN_IF_ERROR(AppendDictRepr(runtime, *value.dict(), writer));
      writer.Append(">", false);
      return writer.status();
    case Kind::kView:
      return AppendViewRepr(runtime, value, writer);
    case Kind::kRange:
      writer.Append(RangeText(*value.As<RangeObject>()), false);
      return writer.status();
    case Kind::kLoop: {
      const auto& loop = *value.As<LoopObject>();
      writer.Append(absl::StrCat("<LoopContext ", loop.index + 1, "/",
                                 loop.items.size(), ">"),
                    false);
      return writer.status();
    }
    default:
      writer.Append(absl::StrCat("<", TypeName(value), " object>"), false);
      return writer.status();
  }
}

}  // namespace

absl::Status AppendRepr(Runtime& runtime, const Value& value,
                        TextWriter& writer) {
  const DepthGuard guard(runtime);
  MILLRACE_RETURN_IF_ERROR(guard.status());
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kMissing:
      writer.Append("Undefined", false);
      return writer.status();
    case Kind::kNone:
      writer.Append("None", value.untrusted());
      return writer.status();
    case Kind::kBool:
      writer.Append(value.boolean() ? "True" : "False", value.untrusted());
      return writer.status();
    case Kind::kInteger:
      writer.Append(IntegerText(value.integer()), value.untrusted());
      return writer.status();
    case Kind::kFloat:
      writer.Append(FloatText(value.number()), value.untrusted());
      return writer.status();
    case Kind::kString:
      return AppendTextRepr(runtime, value.text(), writer);
    default:
      return AppendOtherRepr(runtime, value, writer);
  }
}

absl::Status AppendPrinted(Runtime& runtime, const Value& value,
                           TextWriter& writer) {
  if (value.Is(Kind::kString)) {
    MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(value.text().size()));
    writer.Append(value.text());
    return writer.status();
  }
  if (value.Is(Kind::kUndefined)) {
    return absl::OkStatus();
  }
  return AppendRepr(runtime, value, writer);
}

absl::StatusOr<Text> TextOf(Runtime& runtime, const Value& value) {
  TextWriter writer(runtime);
  MILLRACE_RETURN_IF_ERROR(AppendPrinted(runtime, value, writer));
  return writer.Take();
}

}  // namespace millrace::model::jinja
