#pragma once

#include "absl/status/statusor.h"
#include "model/chat/jinja/runtime.h"
#include "model/chat/jinja/value.h"

namespace millrace::model::jinja {

enum class BinaryOperator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
};

enum class Comparison {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kNotIn,
};

// Python's truth of a value; that of undefined is false.
bool IsTrue(const Value& value);

absl::StatusOr<Value> Apply(Runtime& runtime, BinaryOperator op,
                            const Value& left, const Value& right);
absl::StatusOr<Value> Negate(const Value& value);

absl::StatusOr<bool> Compare(Runtime& runtime, Comparison comparison,
                             const Value& left, const Value& right);
// Equality of any two values, elements compared in depth.
absl::StatusOr<bool> Equal(Runtime& runtime, const Value& left,
                           const Value& right);
// Python's `<`; values without an order are an error.
absl::StatusOr<bool> Less(Runtime& runtime, const Value& left,
                          const Value& right);

}  // namespace millrace::model::jinja
