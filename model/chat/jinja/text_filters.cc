#include <algorithm>

#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/percent_format.h"
#include "model/chat/jinja/print.h"
#include "model/chat/jinja/text_operations.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

template <CaseMapping mapping>
absl::StatusOr<Value> CaseFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text.size()));
  return runtime.heap().MakeString(MapCase(text, mapping));
}

absl::StatusOr<Value> CapitalizeFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text.size() * 8));
  return runtime.heap().MakeString(Capitalize(text));
}

// Unlike str.title(), a word begins after a blank, a hyphen or an opening
// bracket only, and its first letter becomes upper case, not title case.
absl::StatusOr<Value> TitleFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text.size() * 8));
  const auto splits = [](char32_t c) {
    return IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' ||
           c == '<';
  };
  Text out;
  for (int64_t at = 0; at < text.size();) {
    int64_t next = NextPosition(text.bytes(), at);
    if (splits(CodePointAt(text.bytes(), at))) {
      out.Append(text, at, next);
      at = next;
      continue;
    }
    out.Append(MapCase(text.Sub(at, next), CaseMapping::kUpper));
    at = next;
    while (next < text.size() && !splits(CodePointAt(text.bytes(), next))) {
      next = NextPosition(text.bytes(), next);
    }
    out.Append(MapCase(text.Sub(at, next), CaseMapping::kLower));
    at = next;
  }
  return runtime.heap().MakeString(std::move(out));
}

absl::StatusOr<Value> TrimFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(text.size()));
  const Text* characters = nullptr;
  if (IsGiven(arguments, 1)) {
    MILLRACE_ASSIGN_OR_RETURN(characters,
                              TextArgument(arguments, 1, "trim's argument"));
  }
  return runtime.heap().MakeString(Strip(text, characters, Side::kBoth));
}

absl::StatusOr<Value> ReplaceFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_ASSIGN_OR_RETURN(const Text old,
                            TextOf(runtime, arguments.positional[1]));
  MILLRACE_ASSIGN_OR_RETURN(const Text replacement,
                            TextOf(runtime, arguments.positional[2]));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t count,
                            IntegerArgument(arguments, 3, "count", -1));
  return Replace(runtime, text, old, replacement, count);
}

absl::StatusOr<Value> CenterFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t width,
                            IntegerArgument(arguments, 1, "width", 80));
  return Justify(runtime, text, width, Text(" ", false), Side::kBoth);
}

absl::StatusOr<Text> Indention(const Arguments& arguments) {
  if (arguments.positional[1].Is(Kind::kString)) {
    return arguments.positional[1].text();
  }
  MILLRACE_ASSIGN_OR_RETURN(const int64_t width,
                            IntegerArgument(arguments, 1, "width", 4));
  if (width > kFieldWidthMax) {
    return absl::ResourceExhaustedError("a text is indented too far");
  }
  return Text(
      std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '),
      false);
}

absl::StatusOr<Value> IndentFilter(Runtime& runtime, Arguments& arguments) {
  if (!arguments.positional[0].Is(Kind::kString)) {
    return arguments.positional[0].Is(Kind::kUndefined)
               ? FailUndefined(arguments.positional[0])
               : Fail("indent needs a string");
  }
  Text text = arguments.positional[0].text();
  MILLRACE_ASSIGN_OR_RETURN(const Text indention, Indention(arguments));
  const bool first = FlagArgument(arguments, 2, false);
  const bool blank = FlagArgument(arguments, 3, false);
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(text.size()));
  text.Append("\n", false);
  const std::vector<Piece> lines = SplitLines(text, false);
  TextWriter writer(runtime);
  for (size_t i = 0; i < lines.size() && !writer.full(); ++i) {
    const Piece& line = lines[i];
    if (i > 0) {
      writer.Append("\n", text.AnyUntrusted(lines[i - 1].end, line.begin));
    }
    const bool indents = i == 0 ? first : blank || line.begin < line.end;
    if (indents) {
      MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(indention.size()));
      writer.Append(indention);
    }
    writer.Append(text, line.begin, line.end);
  }
  return Finish(runtime, writer);
}

absl::StatusOr<Value> StringFilter(Runtime& runtime, Arguments& arguments) {
  if (arguments.positional[0].Is(Kind::kString)) {
    return arguments.positional[0];
  }
  MILLRACE_ASSIGN_OR_RETURN(Text text,
                            TextOf(runtime, arguments.positional[0]));
  return runtime.heap().MakeString(std::move(text));
}

absl::StatusOr<Value> FormatFilter(Runtime& runtime, Arguments& arguments) {
  if (arguments.positional.empty()) {
    return Fail("format needs a format");
  }
  MILLRACE_ASSIGN_OR_RETURN(const Text format,
                            TextOf(runtime, arguments.positional[0]));
  if (arguments.named.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(
        const Value fields,
        runtime.heap().MakeTuple(
            {arguments.positional.begin() + 1, arguments.positional.end()}));
    return PercentFormat(runtime, format, fields);
  }
  if (arguments.positional.size() > 1) {
    return Fail("format takes positional or named arguments, not both");
  }
  MILLRACE_ASSIGN_OR_RETURN(DictObject * fields,
                            runtime.heap().New<DictObject>());
  for (const auto& [name, value] : arguments.named) {
    MILLRACE_ASSIGN_OR_RETURN(
        const Value key,
        runtime.heap().MakeString(Text(name, arguments.untrusted_names)));
    MILLRACE_RETURN_IF_ERROR(runtime.heap().Put(*fields, key, value));
  }
  return PercentFormat(runtime, format, Value::Of(Kind::kDict, fields));
}

absl::StatusOr<Value> TruncateFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t length,
                            IntegerArgument(arguments, 1, "length", 255));
  Text end("...", false);
  if (IsGiven(arguments, 3)) {
    MILLRACE_ASSIGN_OR_RETURN(const Text* given,
                              TextArgument(arguments, 3, "end"));
    end = *given;
  }
  MILLRACE_ASSIGN_OR_RETURN(const int64_t leeway,
                            IntegerArgument(arguments, 4, "leeway", 5));
  const int64_t kept = length - CountCodePoints(end.bytes());
  if (kept < 0 || leeway < 0) {
    return Fail(
        "truncate: length is below that of the end mark, or leeway "
        "is negative");
  }
  MILLRACE_ASSIGN_OR_RETURN(const int64_t present,
                            LengthOf(runtime, arguments.positional[0]));
  if (present <= length + leeway) {
    return arguments.positional[0];
  }
  MILLRACE_ASSIGN_OR_RETURN(const Text* text,
                            TextArgument(arguments, 0, "truncate's value"));
  int64_t cut = OffsetOf(text->bytes(), kept);
  if (!FlagArgument(arguments, 2, false)) {
    const size_t blank =
        text->bytes().substr(0, static_cast<size_t>(cut)).rfind(' ');
    cut = blank == absl::string_view::npos ? cut : static_cast<int64_t>(blank);
  }
  Text out = text->Sub(0, cut);
  out.Append(end);
  return runtime.heap().MakeString(std::move(out));
}

absl::StatusOr<Value> WordCountFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text.size()));
  int64_t count = 0;
  bool inside = false;
  for (int64_t at = 0; at < text.size(); at = NextPosition(text.bytes(), at)) {
    const char32_t c = CodePointAt(text.bytes(), at);
    const bool word = c == '_' || IsAlpha(c) || IsNumeric(c);
    count += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::Of(count);
}

absl::StatusOr<Text> Separator(const Value& given) {
  if (given.Is(Kind::kString)) {
    return given.text();
  }
  return Fail("tojson: a separator must be a string");
}

absl::StatusOr<Value> ToJsonFilter(Runtime& runtime, Arguments& arguments) {
  JsonStyle style;
  style.ensure_ascii = FlagArgument(arguments, 1, false);
  style.sort_keys = FlagArgument(arguments, 4, false);
  if (IsGiven(arguments, 2)) {
    style.indented = true;
    style.item_separator = Text(",", false);
    Arguments as_indent{.positional = {Value(), arguments.positional[2]},
                        .named = {}};
    MILLRACE_ASSIGN_OR_RETURN(style.indent, Indention(as_indent));
  }
  if (IsGiven(arguments, 3)) {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> pair,
                              ItemsOf(runtime, arguments.positional[3]));
    if (pair.size() != 2) {
      return Fail("tojson: separators must be two strings");
    }
    MILLRACE_ASSIGN_OR_RETURN(style.item_separator, Separator(pair[0]));
    MILLRACE_ASSIGN_OR_RETURN(style.key_separator, Separator(pair[1]));
  }
  TextWriter writer(runtime);
  MILLRACE_RETURN_IF_ERROR(
      AppendJson(runtime, arguments.positional[0], style, writer));
  return Finish(runtime, writer);
}

absl::StatusOr<Value> PrettyPrint(Runtime& runtime, Arguments& arguments) {
  TextWriter writer(runtime);
  MILLRACE_RETURN_IF_ERROR(
      AppendRepr(runtime, arguments.positional[0], writer));
  return Finish(runtime, writer);
}

constexpr Native kFilters[] = {
    {"capitalize", "s", 1, CapitalizeFilter},
    {"center", "value,width", 1, CenterFilter},
    {"format", "*", 1, FormatFilter},
    {"indent", "s,width,first,blank", 1, IndentFilter},
    {"lower", "s", 1, CaseFilter<CaseMapping::kLower>},
    {"pprint", "value", 1, PrettyPrint},
    {"replace", "s,old,new,count", 3, ReplaceFilter},
    {"safe", "value", 1, StringFilter},
    {"string", "value", 1, StringFilter},
    {"title", "s", 1, TitleFilter},
    {"tojson", "value,ensure_ascii,indent,separators,sort_keys", 1,
     ToJsonFilter},
    {"trim", "value,chars", 1, TrimFilter},
    {"truncate", "s,length,killwords,end,leeway", 1, TruncateFilter},
    {"upper", "s", 1, CaseFilter<CaseMapping::kUpper>},
    {"wordcount", "s", 1, WordCountFilter},
};

}  // namespace

absl::Span<const Native> TextFilters() { return kFilters; }

}  // namespace millrace::model::jinja
