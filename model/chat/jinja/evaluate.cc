#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/interpreter.h"
#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/print.h"

namespace millrace::model::jinja {

Interpreter::ValueOr Interpreter::Evaluate(const Expression& expression,
                                           Scope& scope) {
  const DepthGuard guard(runtime_);
  MILLRACE_RETURN_IF_ERROR(guard.status());
  MILLRACE_RETURN_IF_ERROR(runtime_.Spend(1));
  // Called through pointers, so that none of them is inlined here: the frame
  // of this function counts for every level of nesting.
  using Evaluator = ValueOr (Interpreter::*)(const Expression&, Scope&);
  static constexpr Evaluator kEvaluators[] = {
      &Interpreter::EvaluateConstant,       // kConstant
      &Interpreter::EvaluateName,           // kName
      &Interpreter::EvaluateSequence,       // kList
      &Interpreter::EvaluateSequence,       // kTuple
      &Interpreter::EvaluateDict,           // kDict
      &Interpreter::EvaluateAttribute,      // kAttribute
      &Interpreter::EvaluateItem,           // kItem
      &Interpreter::EvaluateSlice,          // kSlice
      &Interpreter::EvaluateCall,           // kCall
      &Interpreter::EvaluateFilter,         // kFilter
      &Interpreter::EvaluateFilter,         // kTest
      &Interpreter::EvaluateUnary,          // kNot
      &Interpreter::EvaluateUnary,          // kNegative
      &Interpreter::EvaluateUnary,          // kPositive
      &Interpreter::EvaluateBinary,         // kBinary
      &Interpreter::EvaluateConcatenation,  // kConcatenation
      &Interpreter::EvaluateComparison,     // kComparison
      &Interpreter::EvaluateLogic,          // kAnd
      &Interpreter::EvaluateLogic,          // kOr
      &Interpreter::EvaluateConditional,    // kConditional
      &Interpreter::EvaluateName,           // kNamespaceAttribute: never here
  };
  static_assert(std::size(kEvaluators) ==
                static_cast<size_t>(ExpressionKind::kNamespaceAttribute) + 1);
  return (this->*kEvaluators[static_cast<size_t>(expression.kind)])(expression,
                                                                    scope);
}

Interpreter::ValueOr Interpreter::EvaluateConstant(const Expression& expression,
                                                   Scope& /*scope*/) {
  return constants_[static_cast<size_t>(expression.constant)];
}

Value Interpreter::Lookup(int32_t symbol, const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    for (const auto& [known, value] : at->variables) {
      if (known == symbol) {
        return value;
      }
    }
  }
  const Value& global = globals_[static_cast<size_t>(symbol)];
  if (!global.Is(Kind::kMissing)) {
    return global;
  }
  return runtime_.heap().MakeUndefined(absl::StrCat(
      "'", program_.symbols[static_cast<size_t>(symbol)], "' is undefined"));
}

Interpreter::ValueOr Interpreter::EvaluateName(const Expression& expression,
                                               Scope& scope) {
  return Lookup(expression.symbol, scope);
}

Interpreter::ValueOr Interpreter::EvaluateSequence(const Expression& expression,
                                                   Scope& scope) {
  std::vector<Value> items;
  items.reserve(expression.items.size());
  for (const Expression* item : expression.items) {
    MILLRACE_ASSIGN_OR_RETURN(Value value, Evaluate(*item, scope));
    items.push_back(std::move(value));
  }
  return runtime_.heap().MakeSequence(
      expression.kind == ExpressionKind::kList ? Kind::kList : Kind::kTuple,
      std::move(items));
}

Interpreter::ValueOr Interpreter::EvaluateDict(const Expression& expression,
                                               Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(DictObject * dict,
                            runtime_.heap().New<DictObject>());
  for (size_t i = 0; i + 1 < expression.items.size(); i += 2) {
    MILLRACE_ASSIGN_OR_RETURN(const Value key,
                              Evaluate(*expression.items[i], scope));
    MILLRACE_ASSIGN_OR_RETURN(Value value,
                              Evaluate(*expression.items[i + 1], scope));
    if (!IsHashable(key)) {
      return Fail(absl::StrCat("unhashable type: '", TypeName(key), "'"));
    }
    MILLRACE_RETURN_IF_ERROR(runtime_.heap().Put(*dict, key, std::move(value)));
  }
  return Value::Of(Kind::kDict, dict);
}

Interpreter::ValueOr Interpreter::EvaluateAttribute(
    const Expression& expression, Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(const Value value,
                            Evaluate(*expression.items[0], scope));
  return GetAttribute(runtime_, value, expression.name);
}

Interpreter::ValueOr Interpreter::EvaluateItem(const Expression& expression,
                                               Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(const Value value,
                            Evaluate(*expression.items[0], scope));
  MILLRACE_ASSIGN_OR_RETURN(const Value key,
                            Evaluate(*expression.items[1], scope));
  return GetItem(runtime_, value, key);
}

Interpreter::ValueOr Interpreter::EvaluateSlice(const Expression& expression,
                                                Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(const Value value,
                            Evaluate(*expression.items[0], scope));
  Value parts[3] = {Value::None(), Value::None(), Value::None()};
  for (size_t i = 0; i < 3; ++i) {
    if (expression.items[i + 1] != nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(parts[i],
                                Evaluate(*expression.items[i + 1], scope));
    }
  }
  return GetSlice(runtime_, value, parts[0], parts[1], parts[2]);
}

Interpreter::ValueOr Interpreter::EvaluateUnary(const Expression& expression,
                                                Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(Value value, Evaluate(*expression.items[0], scope));
  if (expression.kind == ExpressionKind::kNot) {
    return Value::Bool(!IsTrue(value));
  }
  if (expression.kind == ExpressionKind::kNegative) {
    return Negate(value);
  }
  if (value.Is(Kind::kUndefined)) {
    return FailUndefined(value);
  }
  if (!value.IsNumber()) {
    return Fail(
        absl::StrCat("bad operand type for unary +: '", TypeName(value), "'"));
  }
  return value.Is(Kind::kBool) ? Value::Of(value.integer()) : value;
}

Interpreter::ValueOr Interpreter::EvaluateBinary(const Expression& expression,
                                                 Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(const Value left,
                            Evaluate(*expression.items[0], scope));
  MILLRACE_ASSIGN_OR_RETURN(const Value right,
                            Evaluate(*expression.items[1], scope));
  return Apply(runtime_, expression.op, left, right);
}

Interpreter::ValueOr Interpreter::EvaluateConcatenation(
    const Expression& expression, Scope& scope) {
  TextWriter writer(runtime_);
  for (const Expression* item : expression.items) {
    MILLRACE_ASSIGN_OR_RETURN(const Value value, Evaluate(*item, scope));
    MILLRACE_RETURN_IF_ERROR(AppendPrinted(runtime_, value, writer));
  }
  return Finish(runtime_, writer);
}

Interpreter::ValueOr Interpreter::EvaluateComparison(
    const Expression& expression, Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(Value left, Evaluate(*expression.items[0], scope));
  for (size_t i = 0; i < expression.comparisons.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(Value right,
                              Evaluate(*expression.items[i + 1], scope));
    MILLRACE_ASSIGN_OR_RETURN(
        const bool holds,
        Compare(runtime_, expression.comparisons[i], left, right));
    if (!holds) {
      return Value::Bool(false);
    }
    left = std::move(right);
  }
  return Value::Bool(true);
}

Interpreter::ValueOr Interpreter::EvaluateLogic(const Expression& expression,
                                                Scope& scope) {
  const bool stops_at = expression.kind == ExpressionKind::kOr;
  Value value;
  for (const Expression* item : expression.items) {
    MILLRACE_ASSIGN_OR_RETURN(value, Evaluate(*item, scope));
    if (IsTrue(value) == stops_at) {
      break;
    }
  }
  return value;
}

Interpreter::ValueOr Interpreter::EvaluateConditional(
    const Expression& expression, Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(const Value condition,
                            Evaluate(*expression.items[1], scope));
  if (IsTrue(condition)) {
    return Evaluate(*expression.items[0], scope);
  }
  if (expression.items[2] == nullptr) {
    return runtime_.heap().MakeUndefined(
        "the inline if-expression evaluated to false and no else section was "
        "defined.");
  }
  return Evaluate(*expression.items[2], scope);
}

}  // namespace millrace::model::jinja
