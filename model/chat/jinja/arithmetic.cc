#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/percent_format.h"
#include "model/chat/jinja/text_operations.h"

namespace millrace::model::jinja {
namespace {

constexpr absl::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

absl::Status Unsupported(BinaryOperator op, const Value& left,
                         const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (value->Is(Kind::kUndefined)) {
      return FailUndefined(*value);
    }
  }
  return Fail(absl::StrCat("unsupported operands of ",
                           kSigns[static_cast<size_t>(op)], ": '",
                           TypeName(left), "' and '", TypeName(right), "'"));
}

absl::Status TooLarge() {
  return absl::ResourceExhaustedError(
      "an integer of the template has more than 127 bits");
}

absl::StatusOr<Value> IntegerPower(Integer base, Integer exponent) {
  if (exponent < 0) {
    return Value::Float(
        std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Integer result = 1;
  while (exponent > 0) {
    if (base == 0 || base == 1) {
      return Value::Of(base);
    }
    if (base == -1) {
      return Value::Of(exponent % 2 == 0 ? result : Integer{-result});
    }
    if (__builtin_mul_overflow(result, base, &result)) {
      return TooLarge();
    }
    --exponent;
  }
  return Value::Of(result);
}

absl::StatusOr<Value> IntegerApply(BinaryOperator op, Integer a, Integer b) {
  Integer result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOperator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOperator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOperator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOperator::kPower:
      if (a == 0 && b < 0) {
        return Fail("0 cannot be raised to a negative power");
      }
      return IntegerPower(a, b);
    case BinaryOperator::kDivide:
    case BinaryOperator::kFloorDivide:
    case BinaryOperator::kModulo: {
      if (b == 0) {
        return Fail("division by zero");
      }
      if (op == BinaryOperator::kDivide) {
        return Value::Float(static_cast<double>(a) / static_cast<double>(b));
      }
      if (b == -1) {  // the one quotient that can overflow
        overflow = __builtin_sub_overflow(Integer{0}, a, &result);
        result = op == BinaryOperator::kModulo ? 0 : result;
        break;
      }
      const Integer rest = a % b;
      const bool adjust = rest != 0 && (rest < 0) != (b < 0);
      result = op == BinaryOperator::kModulo ? rest + (adjust ? b : 0)
                                             : a / b - (adjust ? 1 : 0);
      break;
    }
  }
  if (overflow) {
    return TooLarge();
  }
  return Value::Of(result);
}

absl::StatusOr<Value> FloatApply(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value::Float(a + b);
    case BinaryOperator::kSubtract:
      return Value::Float(a - b);
    case BinaryOperator::kMultiply:
      return Value::Float(a * b);
    case BinaryOperator::kPower: {
      const double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
        return Fail("a negative number has no fractional power");
      }
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
        return Fail(a == 0 ? "0.0 cannot be raised to a negative power"
                           : "a power is out of the range of a float");
      }
      return Value::Float(result);
    }
    case BinaryOperator::kDivide:
    case BinaryOperator::kFloorDivide:
    case BinaryOperator::kModulo:
      break;
  }
  if (b == 0) {
    return Fail("float division by zero");
  }
  if (op == BinaryOperator::kDivide) {
    return Value::Float(a / b);
  }
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
  }
  if (op == BinaryOperator::kModulo) {
    return Value::Float(rest == 0 ? std::copysign(0.0, b) : rest);
  }
  // As CPython does it: the quotient is almost whole, but need not be quite.
  const double quotient = (a - rest) / b;
  double whole = std::floor(quotient);
  whole += quotient - whole > 0.5 ? 1 : 0;
  return Value::Float(quotient == 0 ? std::copysign(0.0, a / b) : whole);
}

absl::StatusOr<Value> RepeatText(Runtime& runtime, const Text& text,
                                 Integer count) {
  if (count <= 0 || text.empty()) {
    return runtime.heap().MakeString("");
  }
  if (count > kTextBytesMax / text.size()) {
    return absl::ResourceExhaustedError("a repeated text is too long");
  }
  const int64_t total = text.size() * static_cast<int64_t>(count);
  MILLRACE_RETURN_IF_ERROR(runtime.heap().Ensure(total));
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(total));
  TextWriter writer(runtime);
  AppendRepeated(text, static_cast<int64_t>(count), writer);
  return Finish(runtime, writer);
}

absl::StatusOr<Value> RepeatSequence(Runtime& runtime, const Value& value,
                                     Integer count) {
  const std::vector<Value>& source = value.sequence()->items;
  std::vector<Value> items;
  const auto size = static_cast<int64_t>(source.size());
  if (count > 0 && size > 0) {
    constexpr int64_t kItemsMax = int64_t{1} << 22;
    if (count > kItemsMax / size) {
      return absl::ResourceExhaustedError("a repeated list is too long");
    }
    const int64_t total = size * static_cast<int64_t>(count);
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(total / 8));
    MILLRACE_RETURN_IF_ERROR(
        runtime.heap().Ensure(total * static_cast<int64_t>(sizeof(Value))));
    items.reserve(static_cast<size_t>(total));
    for (Integer i = 0; i < count; ++i) {
      items.insert(items.end(), source.begin(), source.end());
    }
  }
  return runtime.heap().MakeSequence(value.kind(), std::move(items));
}

bool IsSequence(const Value& value) {
  return value.Is(Kind::kList) || value.Is(Kind::kTuple);
}

absl::StatusOr<Value> Multiply(Runtime& runtime, const Value& left,
                               const Value& right) {
  const Value& value = left.IsIntegral() ? right : left;
  const Value& count = left.IsIntegral() ? left : right;
  if (count.IsIntegral() && value.Is(Kind::kString)) {
    return RepeatText(runtime, value.text(), count.integer());
  }
  if (count.IsIntegral() && IsSequence(value)) {
    return RepeatSequence(runtime, value, count.integer());
  }
  return Unsupported(BinaryOperator::kMultiply, left, right);
}

absl::StatusOr<Value> Add(Runtime& runtime, const Value& left,
                          const Value& right) {
  if (left.Is(Kind::kString) && right.Is(Kind::kString)) {
    TextWriter writer(runtime);
    writer.Append(left.text());
    writer.Append(right.text());
    return Finish(runtime, writer);
  }
  if (IsSequence(left) && left.kind() == right.kind()) {
    std::vector<Value> items;
    const std::vector<Value>& more = right.sequence()->items;
    const size_t total = left.sequence()->items.size() + more.size();
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(static_cast<int64_t>(total) / 8));
    MILLRACE_RETURN_IF_ERROR(
        runtime.heap().Ensure(static_cast<int64_t>(total * sizeof(Value))));
    items.reserve(total);
    items = left.sequence()->items;
    items.insert(items.end(), more.begin(), more.end());
    return runtime.heap().MakeSequence(left.kind(), std::move(items));
  }
  return Unsupported(BinaryOperator::kAdd, left, right);
}

}  // namespace

absl::StatusOr<Value> Apply(Runtime& runtime, BinaryOperator op,
                            const Value& left, const Value& right) {
  if (left.IsIntegral() && right.IsIntegral()) {
    return IntegerApply(op, left.integer(), right.integer());
  }
  if (left.IsNumber() && right.IsNumber()) {
    return FloatApply(op, left.number(), right.number());
  }
  switch (op) {
    case BinaryOperator::kAdd:
      return Add(runtime, left, right);
    case BinaryOperator::kMultiply:
      return Multiply(runtime, left, right);
    case BinaryOperator::kModulo:
      if (left.Is(Kind::kString)) {
        return PercentFormat(runtime, left.text(), right);
      }
      return Unsupported(op, left, right);
    case BinaryOperator::kSubtract:
    case BinaryOperator::kDivide:
    case BinaryOperator::kFloorDivide:
    case BinaryOperator::kPower:
      return Unsupported(op, left, right);
  }
  return Unsupported(op, left, right);
}

absl::StatusOr<Value> Negate(const Value& value) {
  if (value.IsIntegral()) {
    Integer result;
    if (__builtin_sub_overflow(Integer{0}, value.integer(), &result)) {
      return TooLarge();
    }
    return Value::Of(result);
  }
  if (value.Is(Kind::kFloat)) {
    return Value::Float(-value.number());
  }
  if (value.Is(Kind::kUndefined)) {
    return FailUndefined(value);
  }
  return Fail(
      absl::StrCat("bad operand type for unary -: '", TypeName(value), "'"));
}

}  // namespace millrace::model::jinja
