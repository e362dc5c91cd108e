#include "model/chat/jinja/percent_format.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/number.h"
#include "model/chat/jinja/print.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

// Python takes whatever has items by key for a mapping, lists too, and does not
// ask for such to be used.
bool IsMappingLike(const Value& value) {
  return value.Is(Kind::kDict) || value.Is(Kind::kList) ||
         value.Is(Kind::kRange) || value.Is(Kind::kUndefined);
}

// Reads a format of printf's kind and writes it filled in.
class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& format, const Value& arguments)
      : runtime_(runtime),
        format_(format),
        bytes_(format.bytes()),
        arguments_(arguments),
        writer_(runtime) {}

  absl::StatusOr<Value> Run() {
    while (at_ < format_.size()) {
      const size_t percent = bytes_.find('%', static_cast<size_t>(at_));
      if (percent == absl::string_view::npos) {
        writer_.Append(format_, at_, format_.size());
        break;
      }
      writer_.Append(format_, at_, static_cast<int64_t>(percent));
      at_ = static_cast<int64_t>(percent) + 1;
      MILLRACE_RETURN_IF_ERROR(Field());
    }
    const bool unused = arguments_.Is(Kind::kTuple)
                            ? used_ < arguments_.sequence()->items.size()
                            : used_ == 0 && !IsMappingLike(arguments_);
    if (unused) {
      return Fail("not all arguments converted during string formatting");
    }
    return Finish(runtime_, writer_);
  }

 private:
  [[nodiscard]] char Peek() const {
    return at_ < format_.size() ? bytes_[static_cast<size_t>(at_)] : '\0';
  }

  absl::StatusOr<Value> NextArgument() {
    if (key_.has_value()) {
      if (!arguments_.Is(Kind::kDict)) {
        return Fail("format requires a mapping");
      }
      const Value* found = arguments_.dict()->Find(*key_);
      if (found == nullptr) {
        return Fail(absl::StrCat("no value for '%(", Printable(*key_), ")'"));
      }
      return *found;
    }
    if (!arguments_.Is(Kind::kTuple)) {
      return used_++ == 0 ? absl::StatusOr<Value>(arguments_)
                          : Fail("not enough arguments for format string");
    }
    const std::vector<Value>& items = arguments_.sequence()->items;
    if (used_ >= items.size()) {
      return Fail("not enough arguments for format string");
    }
    return items[used_++];
  }

  absl::StatusOr<int64_t> Number() {
    int64_t number = 0;
    if (Peek() == '*') {
      ++at_;
      MILLRACE_ASSIGN_OR_RETURN(const Value value, NextArgument());
      const Arguments one{.positional = {value}, .named = {}};
      MILLRACE_ASSIGN_OR_RETURN(number, IntegerArgument(one, 0, "a width", 0));
    }
    while (absl::ascii_isdigit(Peek()) && number <= kFieldWidthMax) {
      number = number * 10 + (Peek() - '0');
      ++at_;
    }
    if (number > kFieldWidthMax || number < -kFieldWidthMax) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a width or precision of a format is above ", kFieldWidthMax));
    }
    return number;
  }

  void ReadFlags(FieldLayout& layout) {
    for (;; ++at_) {
      const char flag = Peek();
      if (flag == '-') {
        layout.align = '<';
      } else if (flag == '+') {
        layout.sign = '+';
      } else if (flag == ' ') {
        layout.sign = layout.sign == 0 ? ' ' : layout.sign;
      } else if (flag == '#') {
        layout.alternate = true;
      } else if (flag == '0') {
        layout.zero = true;
      } else {
        return;
      }
    }
  }

  absl::Status Field() {
    FieldLayout layout;
    layout.untrusted = format_.AnyUntrusted();
    key_.reset();
    if (Peek() == '(') {
      const size_t close = bytes_.find(')', static_cast<size_t>(at_));
      if (close == absl::string_view::npos) {
        return Fail("incomplete format key");
      }
      key_ = std::string(bytes_.substr(static_cast<size_t>(at_) + 1,
                                       close - static_cast<size_t>(at_) - 1));
      at_ = static_cast<int64_t>(close) + 1;
    }
    ReadFlags(layout);
    MILLRACE_ASSIGN_OR_RETURN(layout.width, Number());
    if (layout.width < 0) {
      layout.align = '<';
      layout.width = -layout.width;
    }
    if (Peek() == '.') {
      ++at_;
      MILLRACE_ASSIGN_OR_RETURN(layout.precision, Number());
    }
    layout.type = Peek();
    ++at_;
    if (layout.type == '%') {
      writer_.Append(format_, at_ - 1, at_);
      return writer_.status();
    }
    MILLRACE_ASSIGN_OR_RETURN(const Value value, NextArgument());
    return Convert(value, layout);
  }

  absl::Status Convert(const Value& value, FieldLayout layout) {
    switch (layout.type) {
      case 's': {
        MILLRACE_ASSIGN_OR_RETURN(const Text text, TextOf(runtime_, value));
        return AppendPadded(text, layout, '>', writer_);
      }
      case 'r':
      case 'a': {
        TextWriter shown(runtime_);
        MILLRACE_RETURN_IF_ERROR(AppendRepr(runtime_, value, shown));
        return AppendPadded(shown.text(), layout, '>', writer_);
      }
      case 'c':
        return Character(value, layout);
      default:
        break;
    }
    const bool whole = absl::StrContains("diu", layout.type);
    const bool bits = absl::StrContains("oxX", layout.type);
    if (!whole && !bits && !absl::StrContains("eEfFgG", layout.type)) {
      return Fail("unsupported format character");
    }
    if (!value.IsNumber()) {
      return Fail(absl::StrCat("%", std::string(1, layout.type),
                               " needs a number, not ", TypeName(value)));
    }
    if (whole && value.Is(Kind::kFloat)) {
      const std::optional<Integer> integer = TruncateToInteger(value.number());
      if (!integer.has_value()) {
        return Fail("%d cannot show this number");
      }
      return AppendNumber(Value::Of(*integer, value.untrusted()), layout,
                          writer_);
    }
    return AppendNumber(value, layout, writer_);
  }

  absl::Status Character(const Value& value, const FieldLayout& layout) {
    if (value.Is(Kind::kString) && CountCodePoints(value.bytes()) == 1) {
      return AppendPadded(value.text(), layout, '>', writer_);
    }
    if (!value.IsIntegral() || value.integer() < 0 ||
        value.integer() > 0x10FFFF) {
      return Fail("%c needs a character or its number");
    }
    // Untrusted in any case: a number that was reckoned with has lost its mark.
    std::string one;
    AppendCodePoint(static_cast<char32_t>(value.integer()), one);
    return AppendPadded(Text(one, true), layout, '>', writer_);
  }

  Runtime& runtime_;
  const Text& format_;
  const absl::string_view bytes_;
  const Value& arguments_;
  TextWriter writer_;
  int64_t at_ = 0;
  size_t used_ = 0;
  std::optional<std::string> key_;
};

}  // namespace

absl::StatusOr<Value> PercentFormat(Runtime& runtime, const Text& format,
                                    const Value& arguments) {
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(format.size()));
  return PercentFormatter(runtime, format, arguments).Run();
}

}  // namespace millrace::model::jinja
