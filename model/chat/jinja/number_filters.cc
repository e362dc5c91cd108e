#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/number.h"
#include "model/chat/jinja/operators.h"

namespace millrace::model::jinja {
namespace {

absl::StatusOr<Value> AbsFilter(Runtime& /*runtime*/, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  if (value.IsIntegral()) {
    return value.integer() < 0
               ? Negate(value)
               : absl::StatusOr<Value>(Value::Of(value.integer()));
  }
  if (value.Is(Kind::kFloat)) {
    return Value::Float(std::abs(value.number()));
  }
  return value.Is(Kind::kUndefined)
             ? FailUndefined(value)
             : Fail(absl::StrCat("bad operand type for abs(): '",
                                 TypeName(value), "'"));
}

absl::StatusOr<Value> IntFilter(Runtime& /*runtime*/, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  const Value otherwise = arguments.positional[1].Is(Kind::kMissing)
                              ? Value::Of(0)
                              : arguments.positional[1];
  MILLRACE_ASSIGN_OR_RETURN(const int64_t base,
                            IntegerArgument(arguments, 2, "base", 10));
  if (value.Is(Kind::kUndefined)) {
    return FailUndefined(value);
  }
  if (value.IsIntegral()) {
    return Value::Of(value.integer());
  }
  std::optional<double> number;
  if (value.Is(Kind::kString)) {
    if (base == 0 || (base >= 2 && base <= 36)) {
      const std::optional<Integer> integer =
          ParseInteger(value.bytes(), static_cast<int>(base));
      if (integer.has_value()) {
        return Value::Of(*integer);
      }
    }
    number = ParseFloat(value.bytes());
  } else if (value.Is(Kind::kFloat)) {
    number = value.number();
  }
  const std::optional<Integer> whole =
      number.has_value() ? TruncateToInteger(*number) : std::nullopt;
  return whole.has_value() ? Value::Of(*whole) : otherwise;
}

absl::StatusOr<Value> FloatFilter(Runtime& /*runtime*/, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  if (value.Is(Kind::kUndefined)) {
    return FailUndefined(value);
  }
  std::optional<double> number;
  if (value.IsNumber()) {
    number = value.number();
  } else if (value.Is(Kind::kString)) {
    number = ParseFloat(value.bytes());
  }
  if (number.has_value()) {
    return Value::Float(*number);
  }
  return arguments.positional[1].Is(Kind::kMissing) ? Value::Float(0.0)
                                                    : arguments.positional[1];
}

// Half to even on the exact value, as the C library prints it.
double RoundToDigits(double value, int64_t digits) {
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / scale) * scale;
  }
  const std::string shown =
      absl::StrFormat("%.*f", static_cast<int>(digits), value);
  return std::strtod(shown.c_str(), nullptr);
}

absl::StatusOr<Value> RoundFilter(Runtime& /*runtime*/, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  MILLRACE_ASSIGN_OR_RETURN(const int64_t digits,
                            IntegerArgument(arguments, 1, "precision", 0));
  absl::string_view method = "common";
  if (IsGiven(arguments, 2)) {
    MILLRACE_ASSIGN_OR_RETURN(const Text* text,
                              TextArgument(arguments, 2, "method"));
    method = text->bytes();
  }
  if (value.Is(Kind::kUndefined)) {
    return FailUndefined(value);
  }
  if (!value.IsNumber()) {
    return Fail(absl::StrCat("round needs a number, not ", TypeName(value)));
  }
  if (digits > 300 || digits < -300) {
    return Fail("round: the precision is out of range");
  }
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, static_cast<double>(digits));
    const double scaled = value.number() * scale;
    return Value::Float(
        (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (method != "common") {
    return Fail("method must be common, ceil or floor");
  }
  if (value.IsIntegral() && digits >= 0) {
    return Value::Of(value.integer());
  }
  if (!std::isfinite(value.number())) {
    return value;
  }
  const double rounded = RoundToDigits(value.number(), digits);
  return value.IsIntegral() ? Value::Of(static_cast<Integer>(rounded))
                            : Value::Float(rounded);
}

absl::StatusOr<Value> FileSizeFilter(Runtime& runtime, Arguments& arguments) {
  const bool binary = FlagArgument(arguments, 1, false);
  const Value unreadable = Value::None();
  Arguments call{.positional = {arguments.positional[0], unreadable},
                 .named = {}};
  MILLRACE_ASSIGN_OR_RETURN(const Value number, FloatFilter(runtime, call));
  if (!number.Is(Kind::kFloat)) {
    return Fail("filesizeformat needs a number");
  }
  const double bytes = number.number();
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) {
    return runtime.heap().MakeString("1 Byte");
  }
  if (bytes < base) {
    return runtime.heap().MakeString(
        absl::StrFormat("%.0f Bytes", std::trunc(bytes)));
  }
  static constexpr absl::string_view kLetters = "kMGTPEZY";
  size_t index = 0;
  double unit = base * base;
  while (index + 1 < kLetters.size() && bytes >= unit) {
    unit *= base;
    ++index;
  }
  const char letter = binary && index == 0 ? 'K' : kLetters[index];
  return runtime.heap().MakeString(absl::StrFormat(
      "%.1f %c%sB", base * bytes / unit, letter, binary ? "i" : ""));
}

constexpr Native kFilters[] = {
    {"abs", "x", 1, AbsFilter},
    {"filesizeformat", "value,binary", 1, FileSizeFilter},
    {"float", "value,default", 1, FloatFilter},
    {"int", "value,default,base", 1, IntFilter},
    {"round", "value,precision,method", 1, RoundFilter},
};

}  // namespace

absl::Span<const Native> NumberFilters() { return kFilters; }

const Native* FindFilter(absl::string_view name) {
  static const auto* const kTable = [] {
    auto* table = new absl::flat_hash_map<absl::string_view, const Native*>();
    for (const absl::Span<const Native> natives :
         {TextFilters(), MarkupFilters(), SequenceFilters(), OrderFilters(),
          SelectionFilters(), NumberFilters()}) {
      for (const Native& native : natives) {
        table->emplace(native.name, &native);
      }
    }
    return table;
  }();
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace millrace::model::jinja
