#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/number.h"
#include "model/chat/jinja/parser.h"

namespace millrace::model::jinja {

ExpressionOr ExpressionParser::ParseExpression(bool with_conditional) {
  const Nesting nesting(*this);
  MILLRACE_RETURN_IF_ERROR(nesting.status());
  if (!with_conditional) {
    return ParseOr();
  }
  const size_t known = unknown_.size();
  MILLRACE_ASSIGN_OR_RETURN(const Expression* value, ParseOr());
  while (TakeName("if")) {
    Expression* node = NewExpression(ExpressionKind::kConditional);
    MILLRACE_ASSIGN_OR_RETURN(const Expression* condition, ParseOr());
    const Expression* otherwise = nullptr;
    if (TakeName("else")) {
      MILLRACE_ASSIGN_OR_RETURN(otherwise, ParseExpression());
    }
    unknown_.resize(known);
    node->items = {value, condition, otherwise};
    value = node;
  }
  return value;
}

ExpressionOr ExpressionParser::ParseOr() {
  MILLRACE_ASSIGN_OR_RETURN(const Expression* left, ParseAnd());
  if (!SeesName("or")) {
    return left;
  }
  Expression* node = NewExpression(ExpressionKind::kOr);
  node->items = {left};
  while (TakeName("or")) {
    MILLRACE_ASSIGN_OR_RETURN(const Expression* right, ParseAnd());
    node->items.push_back(right);
  }
  return node;
}

ExpressionOr ExpressionParser::ParseAnd() {
  MILLRACE_ASSIGN_OR_RETURN(const Expression* left, ParseNot());
  if (!SeesName("and")) {
    return left;
  }
  Expression* node = NewExpression(ExpressionKind::kAnd);
  node->items = {left};
  while (TakeName("and")) {
    MILLRACE_ASSIGN_OR_RETURN(const Expression* right, ParseNot());
    node->items.push_back(right);
  }
  return node;
}

ExpressionOr ExpressionParser::ParseNot() {
  if (!SeesName("not")) {
    return ParseComparison();
  }
  const Nesting nesting(*this);
  MILLRACE_RETURN_IF_ERROR(nesting.status());
  Expression* node = NewExpression(ExpressionKind::kNot);
  Next();
  MILLRACE_ASSIGN_OR_RETURN(const Expression* value, ParseNot());
  node->items = {value};
  return node;
}

ExpressionOr ExpressionParser::ParseComparison() {
  static constexpr std::pair<absl::string_view, Comparison> kSigns[] = {
      {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual},
      {"<", Comparison::kLess},    {"<=", Comparison::kLessOrEqual},
      {">", Comparison::kGreater}, {">=", Comparison::kGreaterOrEqual}};
  MILLRACE_ASSIGN_OR_RETURN(const Expression* left, ParseSum());
  Expression* node = nullptr;
  while (true) {
    std::optional<Comparison> comparison;
    for (const auto& [sign, meaning] : kSigns) {
      if (SeesOperator(sign)) {
        comparison = meaning;
      }
    }
    if (SeesName("in")) {
      comparison = Comparison::kIn;
    } else if (SeesName("not") && Ahead().type == TokenType::kName &&
               Ahead().text == "in") {
      comparison = Comparison::kNotIn;
      Next();
    }
    if (!comparison.has_value()) {
      return node == nullptr ? left : node;
    }
    if (node == nullptr) {
      node = NewExpression(ExpressionKind::kComparison);
      node->items = {left};
    }
    Next();
    MILLRACE_ASSIGN_OR_RETURN(const Expression* right, ParseSum());
    node->comparisons.push_back(*comparison);
    node->items.push_back(right);
  }
}

ExpressionOr ExpressionParser::Binary(BinaryOperator op, const Expression* left,
                                      const Expression* right) {
  Expression* node = NewExpression(ExpressionKind::kBinary);
  node->op = op;
  node->line = left->line;
  node->items = {left, right};
  return node;
}

ExpressionOr ExpressionParser::ParseSum() {
  MILLRACE_ASSIGN_OR_RETURN(const Expression* left, ParseConcatenation());
  while (SeesOperator("+") || SeesOperator("-")) {
    const BinaryOperator op =
        SeesOperator("+") ? BinaryOperator::kAdd : BinaryOperator::kSubtract;
    Next();
    MILLRACE_ASSIGN_OR_RETURN(const Expression* right, ParseConcatenation());
    MILLRACE_ASSIGN_OR_RETURN(left, Binary(op, left, right));
  }
  return left;
}

ExpressionOr ExpressionParser::ParseConcatenation() {
  MILLRACE_ASSIGN_OR_RETURN(const Expression* left, ParseProduct());
  if (!SeesOperator("~")) {
    return left;
  }
  Expression* node = NewExpression(ExpressionKind::kConcatenation);
  node->items = {left};
  while (TakeOperator("~")) {
    MILLRACE_ASSIGN_OR_RETURN(const Expression* right, ParseProduct());
    node->items.push_back(right);
  }
  return node;
}

ExpressionOr ExpressionParser::ParseProduct() {
  static constexpr std::pair<absl::string_view, BinaryOperator> kSigns[] = {
      {"*", BinaryOperator::kMultiply},
      {"/", BinaryOperator::kDivide},
      {"//", BinaryOperator::kFloorDivide},
      {"%", BinaryOperator::kModulo}};
  MILLRACE_ASSIGN_OR_RETURN(const Expression* left, ParsePower());
  while (true) {
    std::optional<BinaryOperator> op;
    for (const auto& [sign, meaning] : kSigns) {
      if (SeesOperator(sign)) {
        op = meaning;
      }
    }
    if (!op.has_value()) {
      return left;
    }
    Next();
    MILLRACE_ASSIGN_OR_RETURN(const Expression* right, ParsePower());
    MILLRACE_ASSIGN_OR_RETURN(left, Binary(*op, left, right));
  }
}

ExpressionOr ExpressionParser::ParsePower() {
  MILLRACE_ASSIGN_OR_RETURN(const Expression* left, ParseUnary(true));
  while (TakeOperator("**")) {
    MILLRACE_ASSIGN_OR_RETURN(const Expression* right, ParseUnary(true));
    MILLRACE_ASSIGN_OR_RETURN(left,
                              Binary(BinaryOperator::kPower, left, right));
  }
  return left;
}

ExpressionOr ExpressionParser::ParseUnary(bool with_filters) {
  const Nesting nesting(*this);
  MILLRACE_RETURN_IF_ERROR(nesting.status());
  const Expression* value = nullptr;
  if (SeesOperator("-") || SeesOperator("+")) {
    Expression* node =
        NewExpression(SeesOperator("-") ? ExpressionKind::kNegative
                                        : ExpressionKind::kPositive);
    Next();
    MILLRACE_ASSIGN_OR_RETURN(const Expression* inner, ParseUnary(false));
    node->items = {inner};
    value = node;
  } else {
    MILLRACE_ASSIGN_OR_RETURN(value, ParsePrimary());
  }
  MILLRACE_ASSIGN_OR_RETURN(value, ParsePostfix(value));
  return with_filters ? ParseFilterChain(value) : value;
}

ExpressionOr ExpressionParser::ParsePrimary() {
  switch (Current().type) {
    case TokenType::kName:
      return ParseName();
    case TokenType::kInteger:
    case TokenType::kFloat:
      return ParseNumber();
    case TokenType::kString: {
      Expression* node = NewExpression(ExpressionKind::kConstant);
      Program::Constant constant{.kind = Kind::kString};
      while (Current().type == TokenType::kString) {
        constant.text += Current().text;
        Next();
      }
      node->constant = AddConstant(std::move(constant));
      return node;
    }
    default:
      break;
  }
  if (TakeOperator("(")) {
    MILLRACE_ASSIGN_OR_RETURN(const Expression* value, ParseTuple(true, true));
    MILLRACE_RETURN_IF_ERROR(ExpectOperator(")"));
    return value;
  }
  if (SeesOperator("[")) {
    return ParseList();
  }
  if (SeesOperator("{")) {
    return ParseDict();
  }
  return Unexpected();
}

ExpressionOr ExpressionParser::ParseName() {
  const std::string name = Current().text;
  Expression* node = NewExpression(ExpressionKind::kConstant);
  Next();
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    node->constant = AddConstant(
        {.kind = Kind::kBool, .boolean = name == "true" || name == "True"});
  } else if (name == "none" || name == "None") {
    node->constant = AddConstant({.kind = Kind::kNone});
  } else {
    node->kind = ExpressionKind::kName;
    node->symbol = Symbol(name);
    for (Statement* macro : macros_) {
      macro->uses_caller |= node->symbol == kSymbolCaller;
      macro->uses_varargs |= node->symbol == kSymbolVarargs;
      macro->uses_kwargs |= node->symbol == kSymbolKwargs;
    }
  }
  return node;
}

ExpressionOr ExpressionParser::ParseNumber() {
  Expression* node = NewExpression(ExpressionKind::kConstant);
  const Token& token = Current();
  if (token.type == TokenType::kFloat) {
    const std::optional<double> number = ParseFloat(token.text);
    if (!number.has_value()) {
      return Unexpected();
    }
    node->constant = AddConstant({.kind = Kind::kFloat, .number = *number});
  } else {
    const std::optional<Integer> integer = ParseInteger(token.text, 0);
    if (!integer.has_value()) {
      return SyntaxError(token.line,
                         absl::StrCat("'", Printable(token.text, 60),
                                      "' is no integer of 127 bits"));
    }
    node->constant = AddConstant({.kind = Kind::kInteger, .integer = *integer});
  }
  Next();
  return node;
}

ExpressionOr ExpressionParser::ParseTuple(bool with_conditional,
                                          bool in_parentheses) {
  Expression* node = NewExpression(ExpressionKind::kTuple);
  bool is_tuple = false;
  while (true) {
    const bool ends = SeesOperator(")") ||
                      Current().type == TokenType::kVariableEnd ||
                      Current().type == TokenType::kBlockEnd;
    if (ends) {
      break;
    }
    MILLRACE_ASSIGN_OR_RETURN(const Expression* item,
                              ParseExpression(with_conditional));
    node->items.push_back(item);
    if (!TakeOperator(",")) {
      break;
    }
    is_tuple = true;
  }
  if (!is_tuple && !node->items.empty()) {
    return node->items[0];
  }
  if (!is_tuple && !in_parentheses) {
    return Unexpected();
  }
  return node;
}

ExpressionOr ExpressionParser::ParseList() {
  Expression* node = NewExpression(ExpressionKind::kList);
  Next();
  while (!TakeOperator("]")) {
    if (!node->items.empty()) {
      MILLRACE_RETURN_IF_ERROR(ExpectOperator(","));
      if (TakeOperator("]")) {
        break;
      }
    }
    MILLRACE_ASSIGN_OR_RETURN(const Expression* item, ParseExpression());
    node->items.push_back(item);
  }
  return node;
}

ExpressionOr ExpressionParser::ParseDict() {
  Expression* node = NewExpression(ExpressionKind::kDict);
  Next();
  while (!TakeOperator("}")) {
    if (!node->items.empty()) {
      MILLRACE_RETURN_IF_ERROR(ExpectOperator(","));
      if (TakeOperator("}")) {
        break;
      }
    }
    MILLRACE_ASSIGN_OR_RETURN(const Expression* key, ParseExpression());
    MILLRACE_RETURN_IF_ERROR(ExpectOperator(":"));
    MILLRACE_ASSIGN_OR_RETURN(const Expression* value, ParseExpression());
    node->items.push_back(key);
    node->items.push_back(value);
  }
  return node;
}

ExpressionOr ExpressionParser::ParseOneTarget(bool with_namespace) {
  MILLRACE_ASSIGN_OR_RETURN(const Expression* target, ParsePrimary());
  if (target->kind == ExpressionKind::kTuple) {
    for (const Expression* part : target->items) {
      if (part->kind != ExpressionKind::kName &&
          part->kind != ExpressionKind::kTuple) {
        return SyntaxError(part->line, "cannot assign to this");
      }
    }
    return target;
  }
  if (target->kind != ExpressionKind::kName) {
    return SyntaxError(target->line, "cannot assign to this");
  }
  if (!with_namespace || !TakeOperator(".")) {
    return target;
  }
  Expression* node = NewExpression(ExpressionKind::kNamespaceAttribute);
  node->symbol = target->symbol;
  MILLRACE_ASSIGN_OR_RETURN(node->name, ExpectAnyName());
  return node;
}

ExpressionOr ExpressionParser::ParseTarget(bool with_namespace) {
  MILLRACE_ASSIGN_OR_RETURN(const Expression* first,
                            ParseOneTarget(with_namespace));
  if (!SeesOperator(",")) {
    return first;
  }
  Expression* node = NewExpression(ExpressionKind::kTuple);
  node->items = {first};
  while (TakeOperator(",")) {
    if (SeesName("in") || SeesOperator("=")) {
      break;
    }
    MILLRACE_ASSIGN_OR_RETURN(const Expression* part,
                              ParseOneTarget(with_namespace));
    node->items.push_back(part);
  }
  return node;
}

}  // namespace millrace::model::jinja
