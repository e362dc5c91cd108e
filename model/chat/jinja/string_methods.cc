#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/percent_format.h"
#include "model/chat/jinja/text_operations.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

const Text& Self(const Arguments& arguments) {
  return arguments.positional[0].text();
}

template <Side side>
absl::StatusOr<Value> StripMethod(Runtime& runtime, Arguments& arguments) {
  const Text* characters = nullptr;
  if (IsGiven(arguments, 1)) {
    MILLRACE_ASSIGN_OR_RETURN(characters,
                              TextArgument(arguments, 1, "strip's argument"));
  }
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(Self(arguments).size()));
  return runtime.heap().MakeString(Strip(Self(arguments), characters, side));
}

template <CaseMapping mapping>
absl::StatusOr<Value> CaseMethod(Runtime& runtime, Arguments& arguments) {
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(Self(arguments).size()));
  return runtime.heap().MakeString(MapCase(Self(arguments), mapping));
}

template <Text (*map)(const Text&)>
absl::StatusOr<Value> MapMethod(Runtime& runtime, Arguments& arguments) {
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(Self(arguments).size() * 8));
  return runtime.heap().MakeString(map(Self(arguments)));
}

// The part of the receiver that optional start and end arguments leave.
absl::StatusOr<Piece> Window(Runtime& runtime, const Arguments& arguments) {
  const Text& self = Self(arguments);
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(self.size()));
  if (!IsGiven(arguments, 2) && !IsGiven(arguments, 3)) {
    return Piece{0, self.size()};
  }
  const int64_t length = CountCodePoints(self.bytes());
  const auto place = [&](int64_t index) {
    return std::clamp<int64_t>(index < 0 ? index + length : index, 0, length);
  };
  MILLRACE_ASSIGN_OR_RETURN(const int64_t start,
                            IntegerArgument(arguments, 2, "start", 0));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t stop,
                            IntegerArgument(arguments, 3, "end", length));
  const int64_t begin = OffsetOf(self.bytes(), place(start));
  const int64_t end = OffsetOf(self.bytes(), place(stop));
  return Piece{begin, std::max(begin, end)};
}

absl::string_view Bytes(const Text& text, const Piece& piece) {
  return text.bytes().substr(static_cast<size_t>(piece.begin),
                             static_cast<size_t>(piece.end - piece.begin));
}

template <bool at_end>
absl::StatusOr<Value> AffixMethod(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Piece window, Window(runtime, arguments));
  const absl::string_view self = Bytes(Self(arguments), window);
  std::vector<Value> affixes = {arguments.positional[1]};
  if (affixes[0].Is(Kind::kTuple)) {
    affixes = std::vector<Value>(affixes[0].sequence()->items);
  }
  bool result = false;
  for (const Value& affix : affixes) {
    if (!affix.Is(Kind::kString)) {
      return Fail(absl::StrCat("a prefix or suffix must be a string, not ",
                               TypeName(affix)));
    }
    result = result || (at_end ? absl::EndsWith(self, affix.bytes())
                               : absl::StartsWith(self, affix.bytes()));
  }
  return Value::Bool(result);
}

template <bool last, bool required>
absl::StatusOr<Value> FindMethodOfText(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text* wanted,
                            TextArgument(arguments, 1, "the text to find"));
  MILLRACE_ASSIGN_OR_RETURN(const Piece window, Window(runtime, arguments));
  const absl::string_view self = Bytes(Self(arguments), window);
  const size_t found =
      last ? self.rfind(wanted->bytes()) : self.find(wanted->bytes());
  if (found == absl::string_view::npos) {
    if (required) {
      return Fail("substring not found");
    }
    return Value::Of(-1);
  }
  return Value::Of(CountCodePoints(Self(arguments).bytes().substr(
      0, static_cast<size_t>(window.begin) + found)));
}

absl::StatusOr<Value> CountMethod(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text* wanted,
                            TextArgument(arguments, 1, "the text to count"));
  MILLRACE_ASSIGN_OR_RETURN(const Piece window, Window(runtime, arguments));
  const absl::string_view self = Bytes(Self(arguments), window);
  if (wanted->empty()) {
    return Value::Of(CountCodePoints(self) + 1);
  }
  int64_t count = 0;
  for (size_t at = self.find(wanted->bytes()); at != absl::string_view::npos;
       at = self.find(wanted->bytes(),
                      at + static_cast<size_t>(wanted->size()))) {
    ++count;
  }
  return Value::Of(count);
}

absl::StatusOr<Value> ReplaceMethod(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text* old,
                            TextArgument(arguments, 1, "the text to replace"));
  MILLRACE_ASSIGN_OR_RETURN(const Text* replacement,
                            TextArgument(arguments, 2, "the replacement"));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t count,
                            IntegerArgument(arguments, 3, "count", -1));
  return Replace(runtime, Self(arguments), *old, *replacement, count);
}

absl::StatusOr<Value> JoinMethod(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[1]));
  TextWriter writer(runtime);
  for (size_t i = 0; i < items.size() && !writer.full(); ++i) {
    if (!items[i].Is(Kind::kString)) {
      return Fail(
          absl::StrCat("join() needs strings, found ", TypeName(items[i])));
    }
    if (i > 0) {
      writer.Append(Self(arguments));
    }
    writer.Append(items[i].text());
    MILLRACE_RETURN_IF_ERROR(
        runtime.SpendPass(Self(arguments).size() + items[i].text().size()));
  }
  return Finish(runtime, writer);
}

template <Side free_side>
absl::StatusOr<Value> JustifyMethod(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t width,
                            IntegerArgument(arguments, 1, "width", 0));
  Text fill(" ", false);
  if (IsGiven(arguments, 2)) {
    MILLRACE_ASSIGN_OR_RETURN(const Text* given,
                              TextArgument(arguments, 2, "the fill"));
    fill = *given;
  }
  return Justify(runtime, Self(arguments), width, fill, free_side);
}

absl::StatusOr<Value> ZeroFill(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t width,
                            IntegerArgument(arguments, 1, "width", 0));
  const Text& self = Self(arguments);
  const bool has_sign =
      !self.empty() && (self.bytes()[0] == '-' || self.bytes()[0] == '+');
  const int64_t sign = has_sign ? 1 : 0;
  MILLRACE_ASSIGN_OR_RETURN(
      const Value digits, Justify(runtime, self.Sub(sign, self.size()),
                                  width - sign, Text("0", false), Side::kLeft));
  Text out = self.Sub(0, sign);
  out.Append(digits.text());
  return runtime.heap().MakeString(std::move(out));
}

template <bool suffix>
absl::StatusOr<Value> RemoveAffix(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text* affix,
                            TextArgument(arguments, 1, "the affix"));
  const Text& self = Self(arguments);
  const bool has = suffix ? absl::EndsWith(self.bytes(), affix->bytes())
                          : absl::StartsWith(self.bytes(), affix->bytes());
  const int64_t cut = has ? affix->size() : 0;
  return runtime.heap().MakeString(suffix ? self.Sub(0, self.size() - cut)
                                          : self.Sub(cut, self.size()));
}

absl::StatusOr<Value> FormatMethod(Runtime& runtime, Arguments& arguments) {
  if (arguments.positional.empty()) {
    return Fail("format() needs a format");
  }
  return BraceFormat(runtime, Self(arguments), arguments);
}

absl::StatusOr<Value> FormatMapMethod(Runtime& runtime, Arguments& arguments) {
  if (!arguments.positional[1].Is(Kind::kDict)) {
    return Fail("format_map() needs a dictionary");
  }
  Arguments fields{.positional = {arguments.positional[0]}, .named = {}};
  for (const auto& [key, value] : arguments.positional[1].dict()->entries) {
    if (key.Is(Kind::kString)) {
      fields.named.emplace_back(std::string(key.bytes()), value);
    }
  }
  return BraceFormat(runtime, Self(arguments), fields);
}

absl::StatusOr<Value> ExpandTabs(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t size,
                            IntegerArgument(arguments, 1, "tabsize", 8));
  if (size > kFieldWidthMax) {
    return absl::ResourceExhaustedError("tabs are expanded too wide");
  }
  const Text& self = Self(arguments);
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(self.size()));
  TextWriter writer(runtime);
  int64_t column = 0;
  for (int64_t at = 0; at < self.size() && !writer.full();) {
    const int64_t next = NextPosition(self.bytes(), at);
    const char c = self.bytes()[static_cast<size_t>(at)];
    if (c == '\t') {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      writer.Append(std::string(static_cast<size_t>(blanks), ' '),
                    self.AnyUntrusted(at, next));
      column += blanks;
    } else {
      writer.Append(self, at, next);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
    at = next;
  }
  return Finish(runtime, writer);
}

constexpr Native kMethods[] = {
    {"capitalize", "s", 1, MapMethod<Capitalize>},
    {"casefold", "s", 1, CaseMethod<CaseMapping::kFold>},
    {"center", "s,width,fillchar", 2, JustifyMethod<Side::kBoth>},
    {"count", "s,sub,start,end", 2, CountMethod},
    {"endswith", "s,suffix,start,end", 2, AffixMethod<true>},
    {"expandtabs", "s,tabsize", 1, ExpandTabs},
    {"find", "s,sub,start,end", 2, FindMethodOfText<false, false>},
    {"format", "*", 1, FormatMethod},
    {"format_map", "s,mapping", 2, FormatMapMethod},
    {"index", "s,sub,start,end", 2, FindMethodOfText<false, true>},
    {"join", "s,iterable", 2, JoinMethod},
    {"ljust", "s,width,fillchar", 2, JustifyMethod<Side::kRight>},
    {"lower", "s", 1, CaseMethod<CaseMapping::kLower>},
    {"lstrip", "s,chars", 1, StripMethod<Side::kLeft>},
    {"removeprefix", "s,prefix", 2, RemoveAffix<false>},
    {"removesuffix", "s,suffix", 2, RemoveAffix<true>},
    {"replace", "s,old,new,count", 3, ReplaceMethod},
    {"rfind", "s,sub,start,end", 2, FindMethodOfText<true, false>},
    {"rindex", "s,sub,start,end", 2, FindMethodOfText<true, true>},
    {"rjust", "s,width,fillchar", 2, JustifyMethod<Side::kLeft>},
    {"rstrip", "s,chars", 1, StripMethod<Side::kRight>},
    {"startswith", "s,prefix,start,end", 2, AffixMethod<false>},
    {"strip", "s,chars", 1, StripMethod<Side::kBoth>},
    {"swapcase", "s", 1, MapMethod<SwapCase>},
    {"title", "s", 1, MapMethod<TitleCase>},
    {"upper", "s", 1, CaseMethod<CaseMapping::kUpper>},
    {"zfill", "s,width", 2, ZeroFill},
};

}  // namespace

const Native* FindStringMethod(absl::string_view name) {
  static const auto* const kTable = [] {
    auto* table = new absl::flat_hash_map<absl::string_view, const Native*>();
    for (const Native& native : kMethods) {
      table->emplace(native.name, &native);
    }
    for (const Native& native : SplitMethods()) {
      table->emplace(native.name, &native);
    }
    for (const Native& native : CharacterMethods()) {
      table->emplace(native.name, &native);
    }
    return table;
  }();
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace millrace::model::jinja
