#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/number.h"
#include "model/chat/jinja/parser.h"

namespace millrace::model::jinja {

ExpressionOr ExpressionParser::ParsePostfix(const Expression* value) {
  while (true) {
    if (SeesOperator(".") || SeesOperator("[")) {
      MILLRACE_ASSIGN_OR_RETURN(value, ParseSubscript(value));
    } else if (SeesOperator("(")) {
      MILLRACE_ASSIGN_OR_RETURN(value, ParseCall(value));
    } else {
      return value;
    }
  }
}

ExpressionOr ExpressionParser::ParseFilterChain(const Expression* value) {
  while (true) {
    if (SeesOperator("|")) {
      MILLRACE_ASSIGN_OR_RETURN(value, ParseFilters(value, false));
    } else if (SeesName("is")) {
      MILLRACE_ASSIGN_OR_RETURN(value, ParseTest(value));
    } else if (SeesOperator("(")) {
      MILLRACE_ASSIGN_OR_RETURN(value, ParseCall(value));
    } else {
      return value;
    }
  }
}

ExpressionOr ExpressionParser::ParseSubscript(const Expression* value) {
  if (TakeOperator(".")) {
    if (Current().type == TokenType::kName) {
      Expression* node = NewExpression(ExpressionKind::kAttribute);
      node->name = Current().text;
      node->items = {value};
      Next();
      return node;
    }
    if (Current().type != TokenType::kInteger) {
      return SyntaxError(Current().line, "expected name or number");
    }
    Expression* node = NewExpression(ExpressionKind::kItem);
    MILLRACE_ASSIGN_OR_RETURN(const Expression* index, ParseNumber());
    node->items = {value, index};
    return node;
  }
  Expression* node = NewExpression(ExpressionKind::kItem);
  Next();
  const Expression* parts[3] = {nullptr, nullptr, nullptr};
  size_t part = 0;
  while (!SeesOperator("]")) {
    if (SeesOperator(",") || part > 2) {
      return Unexpected();
    }
    if (!SeesOperator(":")) {
      MILLRACE_ASSIGN_OR_RETURN(parts[part], ParseExpression());
    }
    if (!TakeOperator(":")) {
      break;
    }
    node->kind = ExpressionKind::kSlice;
    ++part;
  }
  MILLRACE_RETURN_IF_ERROR(ExpectOperator("]"));
  if (node->kind == ExpressionKind::kSlice) {
    node->items = {value, parts[0], parts[1], parts[2]};
    return node;
  }
  if (parts[0] == nullptr) {
    return Unexpected();
  }
  node->items = {value, parts[0]};
  return node;
}

ExpressionOr ExpressionParser::ParseCall(const Expression* value) {
  Expression* node = NewExpression(ExpressionKind::kCall);
  node->items = {value};
  MILLRACE_ASSIGN_OR_RETURN(node->arguments, ParseArguments());
  return node;
}

absl::Status ExpressionParser::ParseArgument(CallArguments& arguments) {
  const int line = Current().line;
  const auto invalid = [line] {
    return SyntaxError(line, "invalid syntax for function call expression");
  };
  if (TakeOperator("*")) {
    if (arguments.star != nullptr || arguments.star_star != nullptr) {
      return invalid();
    }
    MILLRACE_ASSIGN_OR_RETURN(arguments.star, ParseExpression());
    return absl::OkStatus();
  }
  if (TakeOperator("**")) {
    if (arguments.star_star != nullptr) {
      return invalid();
    }
    MILLRACE_ASSIGN_OR_RETURN(arguments.star_star, ParseExpression());
    return absl::OkStatus();
  }
  const bool named = Current().type == TokenType::kName &&
                     Ahead().type == TokenType::kOperator &&
                     Ahead().text == "=";
  if (named) {
    std::string name = Current().text;
    Next();
    Next();
    MILLRACE_ASSIGN_OR_RETURN(const Expression* value, ParseExpression());
    if (arguments.star_star != nullptr) {
      return invalid();
    }
    arguments.named.emplace_back(std::move(name), value);
    return absl::OkStatus();
  }
  if (arguments.star != nullptr || arguments.star_star != nullptr ||
      !arguments.named.empty()) {
    return invalid();
  }
  MILLRACE_ASSIGN_OR_RETURN(const Expression* value, ParseExpression());
  arguments.positional.push_back(value);
  return absl::OkStatus();
}

absl::StatusOr<CallArguments> ExpressionParser::ParseArguments() {
  CallArguments arguments;
  MILLRACE_RETURN_IF_ERROR(ExpectOperator("("));
  bool first = true;
  while (!TakeOperator(")")) {
    if (!first) {
      MILLRACE_RETURN_IF_ERROR(ExpectOperator(","));
      if (TakeOperator(")")) {
        break;
      }
    }
    first = false;
    MILLRACE_RETURN_IF_ERROR(ParseArgument(arguments));
  }
  return arguments;
}

absl::StatusOr<std::string> ExpressionParser::ParseDottedName() {
  MILLRACE_ASSIGN_OR_RETURN(std::string name, ExpectAnyName());
  while (TakeOperator(".")) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string part, ExpectAnyName());
    absl::StrAppend(&name, ".", part);
  }
  return name;
}

void ExpressionParser::Resolve(Expression& node, absl::string_view what,
                               const Native* native) {
  node.native = native;
  if (native == nullptr) {
    unknown_.push_back(SyntaxError(
        node.line,
        absl::StrCat("No ", what, " named '", Printable(node.name), "'.")));
  }
}

ExpressionOr ExpressionParser::ParseFilters(const Expression* value,
                                            bool inline_first) {
  while (SeesOperator("|") || inline_first) {
    if (!inline_first) {
      Next();
    }
    inline_first = false;
    Expression* node = NewExpression(ExpressionKind::kFilter);
    node->items = {value};
    MILLRACE_ASSIGN_OR_RETURN(node->name, ParseDottedName());
    if (SeesOperator("(")) {
      MILLRACE_ASSIGN_OR_RETURN(node->arguments, ParseArguments());
    }
    Resolve(*node, "filter", FindFilter(node->name));
    value = node;
  }
  return value;
}

ExpressionOr ExpressionParser::ParseTest(const Expression* value) {
  Next();
  Expression* negation = nullptr;
  if (SeesName("not")) {
    negation = NewExpression(ExpressionKind::kNot);
    Next();
  }
  Expression* node = NewExpression(ExpressionKind::kTest);
  node->items = {value};
  MILLRACE_ASSIGN_OR_RETURN(node->name, ParseDottedName());
  const bool has_argument =
      (Current().type == TokenType::kName && !SeesName("else") &&
       !SeesName("or") && !SeesName("and")) ||
      Current().type == TokenType::kString ||
      Current().type == TokenType::kInteger ||
      Current().type == TokenType::kFloat || SeesOperator("[") ||
      SeesOperator("{");
  if (SeesOperator("(")) {
    MILLRACE_ASSIGN_OR_RETURN(node->arguments, ParseArguments());
  } else if (has_argument) {
    if (SeesName("is")) {
      return SyntaxError(node->line, "You cannot chain multiple tests with is");
    }
    MILLRACE_ASSIGN_OR_RETURN(const Expression* argument, ParsePrimary());
    MILLRACE_ASSIGN_OR_RETURN(argument, ParsePostfix(argument));
    node->arguments.positional = {argument};
  }
  Resolve(*node, "test", FindTest(node->name));
  if (negation != nullptr) {
    negation->items = {node};
    return negation;
  }
  return node;
}

}  // namespace millrace::model::jinja
