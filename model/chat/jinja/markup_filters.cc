#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/print.h"
#include "model/chat/jinja/text_operations.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

absl::string_view HtmlEntity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&#34;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

void AppendEscaped(const Text& text, TextWriter& writer) {
  int64_t plain = 0;
  for (int64_t at = 0; at < text.size(); ++at) {
    const absl::string_view entity =
        HtmlEntity(text.bytes()[static_cast<size_t>(at)]);
    if (!entity.empty()) {
      writer.Append(text, plain, at);
      writer.Append(entity, text.AnyUntrusted(at, at + 1));
      plain = at + 1;
    }
  }
  writer.Append(text, plain, text.size());
}

absl::StatusOr<Value> EscapeFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text.size()));
  TextWriter writer(runtime);
  AppendEscaped(text, writer);
  return Finish(runtime, writer);
}

void AppendQuoted(const Text& text, bool slash_is_safe, TextWriter& writer) {
  for (int64_t at = 0; at < text.size() && !writer.full(); ++at) {
    const char c = text.bytes()[static_cast<size_t>(at)];
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                       c == '_' || c == '.' || c == '-' || c == '~' ||
                       (slash_is_safe && c == '/');
    const std::string shown =
        plain ? std::string(1, c)
        : !slash_is_safe && c == ' '
            ? "+"
            : absl::StrFormat("%%%02X", static_cast<unsigned char>(c));
    writer.Append(shown, text.AnyUntrusted(at, at + 1));
  }
}

absl::StatusOr<Value> UrlEncodeFilter(Runtime& runtime, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  TextWriter writer(runtime);
  std::vector<Value> pairs;
  if (value.Is(Kind::kDict)) {
    for (const auto& [key, item] : value.dict()->entries) {
      MILLRACE_ASSIGN_OR_RETURN(Value pair,
                                runtime.heap().MakeTuple({key, item}));
      pairs.push_back(std::move(pair));
    }
  } else if (value.Is(Kind::kList) || value.Is(Kind::kTuple) ||
             value.Is(Kind::kView)) {
    MILLRACE_ASSIGN_OR_RETURN(pairs, ItemsOf(runtime, value));
  } else {
    MILLRACE_ASSIGN_OR_RETURN(const Text text, TextOf(runtime, value));
    MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text.size() * 4));
    AppendQuoted(text, true, writer);
    return Finish(runtime, writer);
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> pair,
                              ItemsOf(runtime, pairs[i]));
    if (pair.size() != 2) {
      return Fail("urlencode needs pairs");
    }
    writer.Append(i > 0 ? "&" : "", false);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      MILLRACE_ASSIGN_OR_RETURN(const Text text, TextOf(runtime, pair[side]));
      MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text.size() * 4));
      AppendQuoted(text, false, writer);
      writer.Append(side == 0 ? "=" : "", false);
    }
  }
  return Finish(runtime, writer);
}

// Comments and tags go, white space becomes single blanks.
absl::StatusOr<Value> StripTagsFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text.size()));
  Text bare;
  const absl::string_view bytes = text.bytes();
  for (size_t at = 0; at < bytes.size();) {
    const size_t open = bytes.find('<', at);
    const bool comment =
        open != absl::string_view::npos && bytes.substr(open, 4) == "<!--";
    const size_t close = open == absl::string_view::npos
                             ? open
                             : bytes.find(comment ? "-->" : ">", open);
    if (close == absl::string_view::npos) {
      bare.Append(text, static_cast<int64_t>(at), text.size());
      break;
    }
    bare.Append(text, static_cast<int64_t>(at), static_cast<int64_t>(open));
    at = close + (comment ? 3 : 1);
  }
  Text out;
  for (int64_t at = 0; at < bare.size();) {
    const int64_t next = NextPosition(bare.bytes(), at);
    if (!IsSpace(CodePointAt(bare.bytes(), at))) {
      out.Append(bare, at, next);
    } else if (!out.empty() && out.bytes().back() != ' ') {
      out.AppendMapped(" ", bare, at, next);
    }
    at = next;
  }
  return runtime.heap().MakeString(Strip(out, nullptr, Side::kBoth));
}

absl::StatusOr<Value> XmlAttributesFilter(Runtime& runtime,
                                          Arguments& arguments) {
  if (!arguments.positional[0].Is(Kind::kDict)) {
    return Fail("xmlattr needs a dictionary");
  }
  TextWriter writer(runtime);
  bool first = true;
  for (const auto& [key, value] : arguments.positional[0].dict()->entries) {
    if (value.Is(Kind::kNone) || value.Is(Kind::kUndefined)) {
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(const Text name, TextOf(runtime, key));
    MILLRACE_ASSIGN_OR_RETURN(const Text shown, TextOf(runtime, value));
    MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(name.size() + shown.size()));
    if (name.bytes().find_first_of(" \t\n\r\f\v/>=") !=
        absl::string_view::npos) {
      return Fail("invalid character in the name of an attribute");
    }
    const bool blank = !first || FlagArgument(arguments, 1, true);
    writer.Append(blank ? " " : "", false);
    first = false;
    AppendEscaped(name, writer);
    writer.Append("=\"", false);
    AppendEscaped(shown, writer);
    writer.Append("\"", false);
  }
  return Finish(runtime, writer);
}

// Appends the words of [line.begin, line.end) in lines of `width` characters
// at most.
void AppendWrapped(const Text& text, const Piece& line, int64_t width,
                   const Text& separator, bool break_words,
                   TextWriter& writer) {
  const absl::string_view bytes = text.bytes();
  const auto at_blank = [&](int64_t at) {
    return bytes[static_cast<size_t>(at)] == ' ';
  };
  int64_t column = 0;
  int64_t gap = line.begin;  // where the blanks before the next word begin
  for (int64_t at = line.begin; at < line.end && !writer.full();) {
    while (at < line.end && at_blank(at)) {
      ++at;
    }
    int64_t end = at;
    int64_t length = 0;
    while (end < line.end && !at_blank(end)) {
      end = NextPosition(bytes, end);
      ++length;
    }
    if (at == end) {
      break;
    }
    const int64_t blanks = at - gap;
    if (column > 0 && column + blanks + length > width) {
      writer.Append(separator);
      column = 0;
    } else if (column > 0 || gap == line.begin) {
      writer.Append(text, gap, at);
      column += blanks;
    }
    while (break_words && length > width && !writer.full()) {
      const int64_t cut =
          at + OffsetOf(bytes.substr(static_cast<size_t>(at)), width);
      writer.Append(text, at, cut);
      writer.Append(separator);
      at = cut;
      length -= width;
    }
    writer.Append(text, at, end);
    column += length;
    gap = at = end;
  }
}

absl::StatusOr<Value> WordWrapFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text* text,
                            TextArgument(arguments, 0, "wordwrap's value"));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t width,
                            IntegerArgument(arguments, 1, "width", 79));
  if (width <= 0) {
    return Fail("wordwrap: the width must be above zero");
  }
  Text separator("\n", false);
  if (IsGiven(arguments, 3)) {
    MILLRACE_ASSIGN_OR_RETURN(const Text* given,
                              TextArgument(arguments, 3, "wrapstring"));
    separator = *given;
  }
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(text->size() * 2));
  TextWriter writer(runtime);
  bool first = true;
  for (const Piece& line : SplitLines(*text, false)) {
    if (!first) {
      writer.Append(separator);
    }
    first = false;
    AppendWrapped(*text, line, width, separator,
                  FlagArgument(arguments, 2, true), writer);
  }
  return Finish(runtime, writer);
}

constexpr Native kFilters[] = {
    {"e", "s", 1, EscapeFilter},
    {"escape", "s", 1, EscapeFilter},
    {"forceescape", "value", 1, EscapeFilter},
    {"striptags", "value", 1, StripTagsFilter},
    {"urlencode", "value", 1, UrlEncodeFilter},
    {"wordwrap", "s,width,break_long_words,wrapstring,break_on_hyphens", 1,
     WordWrapFilter},
    {"xmlattr", "d,autospace", 1, XmlAttributesFilter},
};

}  // namespace

absl::Span<const Native> MarkupFilters() { return kFilters; }

}  // namespace millrace::model::jinja
