#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/percent_format.h"
#include "model/chat/jinja/print.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

absl::StatusOr<int64_t> ReadWidth(absl::string_view spec, size_t& at) {
  int64_t number = 0;
  while (at < spec.size() && absl::ascii_isdigit(spec[at])) {
    number = number * 10 + (spec[at++] - '0');
    if (number > kFieldWidthMax) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a width or precision of a format is above ", kFieldWidthMax));
    }
  }
  return number;
}

bool IsAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// [[fill]align][sign][#][0][width][,][.precision][type]
absl::StatusOr<FieldLayout> ParseSpec(absl::string_view spec) {
  FieldLayout layout;
  size_t at = 0;
  const auto peek = [&] { return at < spec.size() ? spec[at] : '\0'; };
  if (!spec.empty()) {
    const auto second = static_cast<size_t>(NextPosition(spec, 0));
    if (second < spec.size() && IsAlign(spec[second])) {
      layout.fill = CodePointAt(spec, 0);
      layout.align = spec[second];
      at = second + 1;
    } else if (IsAlign(spec[0])) {
      layout.align = spec[0];
      at = 1;
    }
  }
  if (peek() == '+' || peek() == ' ' || peek() == '-') {
    layout.sign = peek() == '-' ? '\0' : peek();
    ++at;
  }
  if (peek() == '#') {
    layout.alternate = true;
    ++at;
  }
  if (peek() == '0') {
    layout.zero = true;
    ++at;
  }
  MILLRACE_ASSIGN_OR_RETURN(layout.width, ReadWidth(spec, at));
  if (peek() == ',' || peek() == '_') {
    layout.thousands = peek();
    ++at;
  }
  if (peek() == '.') {
    ++at;
    MILLRACE_ASSIGN_OR_RETURN(layout.precision, ReadWidth(spec, at));
  }
  layout.type = peek();
  if (at + 1 < spec.size()) {
    return Fail("invalid format specifier");
  }
  return layout;
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Text& format,
                 const Arguments& arguments)
      : runtime_(runtime),
        format_(format),
        bytes_(format.bytes()),
        arguments_(arguments),
        writer_(runtime) {}

  absl::StatusOr<Value> Run() {
    const auto size = bytes_.size();
    size_t plain = 0;
    for (size_t at = 0; at < size;) {
      const char c = bytes_[at];
      if (c != '{' && c != '}') {
        ++at;
        continue;
      }
      writer_.Append(format_, static_cast<int64_t>(plain),
                     static_cast<int64_t>(at));
      if (at + 1 < size && bytes_[at + 1] == c) {
        plain = at + 1;  // the doubled brace stands for one
        at += 2;
        continue;
      }
      const size_t close = bytes_.find('}', at);
      if (c == '}' || close == absl::string_view::npos) {
        return Fail("single brace in a format string");
      }
      MILLRACE_RETURN_IF_ERROR(Field(bytes_.substr(at + 1, close - at - 1)));
      at = plain = close + 1;
    }
    writer_.Append(format_, static_cast<int64_t>(plain), format_.size());
    return Finish(runtime_, writer_);
  }

 private:
  absl::StatusOr<Value> First(absl::string_view name) {
    int64_t index = 0;
    if (name.empty()) {
      index = next_++;
    } else if (!absl::SimpleAtoi(name, &index)) {
      for (const auto& [known, value] : arguments_.named) {
        if (known == name) {
          return value;
        }
      }
      return Fail(
          absl::StrCat("format has no argument '", Printable(name), "'"));
    }
    // The first positional argument is the format itself.
    if (index < 0 ||
        index + 1 >= static_cast<int64_t>(arguments_.positional.size())) {
      return Fail("format has too few arguments");
    }
    return arguments_.positional[static_cast<size_t>(index) + 1];
  }

  // name.attribute[key]...
  absl::StatusOr<Value> Resolve(absl::string_view path) {
    size_t at = std::min(path.find_first_of(".["), path.size());
    MILLRACE_ASSIGN_OR_RETURN(Value value, First(path.substr(0, at)));
    while (at < path.size()) {
      const bool bracket = path[at] == '[';
      const size_t end =
          bracket ? path.find(']', at)
                  : std::min(path.find_first_of(".[", at + 1), path.size());
      if (end == absl::string_view::npos || end <= at + 1) {
        return Fail("malformed field of a format");
      }
      const absl::string_view name = path.substr(at + 1, end - at - 1);
      int64_t index = 0;
      if (!bracket) {
        MILLRACE_ASSIGN_OR_RETURN(value, GetAttribute(runtime_, value, name));
      } else {
        MILLRACE_ASSIGN_OR_RETURN(Value key, runtime_.heap().MakeString(name));
        key = absl::SimpleAtoi(name, &index) ? Value::Of(index) : key;
        MILLRACE_ASSIGN_OR_RETURN(value, GetItem(runtime_, value, key));
      }
      at = bracket ? end + 1 : end;
    }
    return value;
  }

  absl::Status Field(absl::string_view field) {
    MILLRACE_RETURN_IF_ERROR(runtime_.Spend(4));
    const size_t colon = std::min(field.find(':'), field.size());
    absl::string_view path = field.substr(0, colon);
    const absl::string_view spec =
        colon < field.size() ? field.substr(colon + 1) : "";
    char conversion = 0;
    if (path.size() >= 2 && path[path.size() - 2] == '!') {
      conversion = path.back();
      path.remove_suffix(2);
    }
    MILLRACE_ASSIGN_OR_RETURN(const Value value, Resolve(path));
    MILLRACE_ASSIGN_OR_RETURN(FieldLayout layout, ParseSpec(spec));
    layout.untrusted = format_.AnyUntrusted();
    if (conversion == 'r' || conversion == 'a') {
      TextWriter shown(runtime_);
      MILLRACE_RETURN_IF_ERROR(AppendRepr(runtime_, value, shown));
      return AppendPadded(shown.text(), layout, '<', writer_);
    }
    const bool as_number =
        conversion == 0 && value.IsNumber() && !spec.empty() &&
        (!value.Is(Kind::kBool) || layout.type != 0) && layout.type != 's';
    if (as_number) {
      return AppendNumber(value, layout, writer_);
    }
    if (layout.type != 0 && layout.type != 's') {
      return Fail("unknown format code for a value that is no number");
    }
    MILLRACE_ASSIGN_OR_RETURN(const Text text, TextOf(runtime_, value));
    return AppendPadded(text, layout, '<', writer_);
  }

  Runtime& runtime_;
  const Text& format_;
  const absl::string_view bytes_;
  const Arguments& arguments_;
  TextWriter writer_;
  int64_t next_ = 0;
};

}  // namespace

absl::StatusOr<Value> BraceFormat(Runtime& runtime, const Text& format,
                                  const Arguments& arguments) {
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(format.size()));
  return BraceFormatter(runtime, format, arguments).Run();
}

}  // namespace millrace::model::jinja
