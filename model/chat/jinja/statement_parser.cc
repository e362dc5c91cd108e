#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/parser.h"

namespace millrace::model::jinja {
namespace {

using Body = std::vector<const Statement*>;
using StatementOr = absl::StatusOr<const Statement*>;
using EndTags = std::vector<absl::string_view>;

class StatementParser : public ExpressionParser {
 public:
  explicit StatementParser(std::vector<Token> tokens)
      : ExpressionParser(std::move(tokens)) {}

  absl::StatusOr<std::unique_ptr<Program>> Run() {
    MILLRACE_ASSIGN_OR_RETURN(program_->body, ParseBody({}));
    if (!unknown_.empty()) {
      return unknown_.front();
    }
    return std::move(program_);
  }

 private:
  // Statements up to a tag of `ends`, whose name is the current token then; up
  // to the end of the template where there are none.
  absl::StatusOr<Body> ParseBody(const EndTags& ends) {
    const Nesting nesting(*this);
    MILLRACE_RETURN_IF_ERROR(nesting.status());
    Body body;
    while (Current().type != TokenType::kEnd) {
      if (Current().type == TokenType::kBlockBegin) {
        Next();
        const bool ended =
            Current().type == TokenType::kName &&
            std::find(ends.begin(), ends.end(), Current().text) != ends.end();
        if (ended) {
          return body;
        }
        MILLRACE_ASSIGN_OR_RETURN(const Statement* statement, ParseStatement());
        MILLRACE_RETURN_IF_ERROR(ExpectEnd(TokenType::kBlockEnd));
        body.push_back(statement);
      } else {
        MILLRACE_ASSIGN_OR_RETURN(const Statement* statement, ParseOutput());
        body.push_back(statement);
      }
    }
    if (!ends.empty()) {
      return SyntaxError(
          Current().line,
          absl::StrCat("Unexpected end of template. Jinja was looking for the "
                       "following tags: '",
                       absl::StrJoin(ends, "' or '"), "'."));
    }
    return body;
  }

  absl::Status ExpectEnd(TokenType type) {
    if (Current().type != type) {
      return Unexpected();
    }
    Next();
    return absl::OkStatus();
  }

  // The end of the tag that opens a body, and the body.
  absl::StatusOr<Body> OpenBody(const EndTags& ends) {
    TakeOperator(":");
    MILLRACE_RETURN_IF_ERROR(ExpectEnd(TokenType::kBlockEnd));
    return ParseBody(ends);
  }

  // The same up to the one tag `end`, which is taken.
  absl::StatusOr<Body> WholeBody(absl::string_view end) {
    MILLRACE_ASSIGN_OR_RETURN(Body body, OpenBody({end}));
    Next();
    return body;
  }

  StatementOr ParseOutput() {
    if (Current().type == TokenType::kData) {
      Statement* data = NewStatement(StatementKind::kData);
      data->constant =
          AddConstant({.kind = Kind::kString, .text = Current().text});
      Next();
      return data;
    }
    Statement* output = NewStatement(StatementKind::kOutput);
    Next();
    MILLRACE_ASSIGN_OR_RETURN(output->expression, ParseTuple(true, false));
    MILLRACE_RETURN_IF_ERROR(ExpectEnd(TokenType::kVariableEnd));
    return output;
  }

  StatementOr ParseStatement() {
    if (Current().type != TokenType::kName) {
      return SyntaxError(Current().line, "tag name expected");
    }
    using Reader = StatementOr (StatementParser::*)();
    static constexpr std::pair<absl::string_view, Reader> kReaders[] = {
        {"if", &StatementParser::ParseIf},
        {"for", &StatementParser::ParseFor},
        {"set", &StatementParser::ParseSet},
        {"macro", &StatementParser::ParseMacro},
        {"call", &StatementParser::ParseCallBlock},
        {"filter", &StatementParser::ParseFilterBlock},
        {"with", &StatementParser::ParseWith},
        {"block", &StatementParser::ParseBlock},
        {"generation", &StatementParser::ParseGeneration},
        {"autoescape", &StatementParser::ParseAutoescape},
        {"print", &StatementParser::ParsePrint},
        {"break", &StatementParser::ParseLoopControl},
        {"continue", &StatementParser::ParseLoopControl},
        {"include", &StatementParser::ParseUnavailable},
        {"import", &StatementParser::ParseUnavailable},
        {"from", &StatementParser::ParseUnavailable},
        {"extends", &StatementParser::ParseUnavailable}};
    for (const auto& [name, reader] : kReaders) {
      if (SeesName(name)) {
        return (this->*reader)();
      }
    }
    return SyntaxError(Current().line,
                       absl::StrCat("Encountered unknown tag '",
                                    Printable(Current().text), "'."));
  }

  StatementOr ParseIf() {
    Statement* node = NewStatement(StatementKind::kIf);
    const size_t known = unknown_.size();
    bool more = true;
    while (more) {
      Next();
      MILLRACE_ASSIGN_OR_RETURN(const Expression* condition,
                                ParseTuple(false, false));
      node->conditions.push_back(condition);
      MILLRACE_ASSIGN_OR_RETURN(Body body, OpenBody({"elif", "else", "endif"}));
      node->bodies.push_back(std::move(body));
      more = SeesName("elif");
    }
    if (TakeName("else")) {
      MILLRACE_ASSIGN_OR_RETURN(Body body, OpenBody({"endif"}));
      node->bodies.push_back(std::move(body));
    }
    Next();
    unknown_.resize(known);
    return node;
  }

  StatementOr ParseFor() {
    Statement* node = NewStatement(StatementKind::kFor);
    Next();
    MILLRACE_ASSIGN_OR_RETURN(node->target, ParseTarget(false));
    MILLRACE_RETURN_IF_ERROR(ExpectName("in"));
    MILLRACE_ASSIGN_OR_RETURN(node->expression, ParseTuple(false, false));
    if (TakeName("if")) {
      MILLRACE_ASSIGN_OR_RETURN(node->condition, ParseExpression());
    }
    node->recursive = TakeName("recursive");
    ++loops_;
    absl::StatusOr<Body> body = OpenBody({"endfor", "else"});
    --loops_;
    MILLRACE_RETURN_IF_ERROR(body.status());
    node->bodies.push_back(*std::move(body));
    if (TakeName("else")) {
      MILLRACE_ASSIGN_OR_RETURN(Body otherwise, OpenBody({"endfor"}));
      node->bodies.push_back(std::move(otherwise));
    }
    Next();
    return node;
  }

  StatementOr ParseLoopControl() {
    if (loops_ == 0) {
      return SyntaxError(Current().line,
                         absl::StrCat("'", Current().text, "' outside loop"));
    }
    Statement* node = NewStatement(
        SeesName("break") ? StatementKind::kBreak : StatementKind::kContinue);
    Next();
    return node;
  }

  StatementOr ParseSet() {
    Statement* node = NewStatement(StatementKind::kSet);
    Next();
    MILLRACE_ASSIGN_OR_RETURN(node->target, ParseTarget(true));
    if (TakeOperator("=")) {
      MILLRACE_ASSIGN_OR_RETURN(node->expression, ParseTuple(true, false));
      return node;
    }
    node->kind = StatementKind::kSetBlock;
    MILLRACE_ASSIGN_OR_RETURN(node->expression, ParseFilters(nullptr, false));
    MILLRACE_ASSIGN_OR_RETURN(Body body, WholeBody("endset"));
    node->bodies.push_back(std::move(body));
    return node;
  }

  absl::Status ParseSignature(Statement& node) {
    MILLRACE_RETURN_IF_ERROR(ExpectOperator("("));
    while (!TakeOperator(")")) {
      if (!node.parameters.empty()) {
        MILLRACE_RETURN_IF_ERROR(ExpectOperator(","));
        if (TakeOperator(")")) {
          break;
        }
      }
      MILLRACE_ASSIGN_OR_RETURN(const std::string name, ExpectAnyName());
      node.parameters.push_back(Symbol(name));
      if (TakeOperator("=")) {
        MILLRACE_ASSIGN_OR_RETURN(const Expression* value, ParseExpression());
        node.defaults.push_back(value);
      } else if (!node.defaults.empty()) {
        return SyntaxError(Current().line,
                           "non-default argument follows default argument");
      }
    }
    return absl::OkStatus();
  }

  // Loops around a macro are none of its own.
  absl::Status MacroBody(Statement& node, absl::string_view end) {
    macros_.push_back(&node);
    const int loops = std::exchange(loops_, 0);
    absl::StatusOr<Body> body = WholeBody(end);
    loops_ = loops;
    macros_.pop_back();
    MILLRACE_RETURN_IF_ERROR(body.status());
    node.bodies.push_back(*std::move(body));
    return absl::OkStatus();
  }

  StatementOr ParseMacro() {
    Statement* node = NewStatement(StatementKind::kMacro);
    Next();
    MILLRACE_ASSIGN_OR_RETURN(node->name, ExpectAnyName());
    node->symbol = Symbol(node->name);
    MILLRACE_RETURN_IF_ERROR(ParseSignature(*node));
    MILLRACE_RETURN_IF_ERROR(MacroBody(*node, "endmacro"));
    return node;
  }

  StatementOr ParseCallBlock() {
    Statement* node = NewStatement(StatementKind::kCall);
    Next();
    node->name = "caller";
    if (SeesOperator("(")) {
      MILLRACE_RETURN_IF_ERROR(ParseSignature(*node));
    }
    MILLRACE_ASSIGN_OR_RETURN(node->expression, ParseExpression());
    if (node->expression->kind != ExpressionKind::kCall) {
      return SyntaxError(node->line, "expected call");
    }
    MILLRACE_RETURN_IF_ERROR(MacroBody(*node, "endcall"));
    return node;
  }

  StatementOr ParseFilterBlock() {
    Statement* node = NewStatement(StatementKind::kFilter);
    Next();
    MILLRACE_ASSIGN_OR_RETURN(node->expression, ParseFilters(nullptr, true));
    MILLRACE_ASSIGN_OR_RETURN(Body body, WholeBody("endfilter"));
    node->bodies.push_back(std::move(body));
    return node;
  }

  StatementOr ParseWith() {
    Statement* node = NewStatement(StatementKind::kWith);
    Next();
    while (Current().type != TokenType::kBlockEnd && !SeesOperator(":")) {
      if (!node->targets.empty()) {
        MILLRACE_RETURN_IF_ERROR(ExpectOperator(","));
      }
      MILLRACE_ASSIGN_OR_RETURN(const Expression* target, ParseTarget(false));
      MILLRACE_RETURN_IF_ERROR(ExpectOperator("="));
      MILLRACE_ASSIGN_OR_RETURN(const Expression* value, ParseExpression());
      node->targets.push_back(target);
      node->conditions.push_back(value);
    }
    MILLRACE_ASSIGN_OR_RETURN(Body body, WholeBody("endwith"));
    node->bodies.push_back(std::move(body));
    return node;
  }

  StatementOr ParseBlock() {
    Statement* node = NewStatement(StatementKind::kScope);
    Next();
    MILLRACE_ASSIGN_OR_RETURN(const std::string name, ExpectAnyName());
    TakeName("scoped");
    TakeName("required");
    MILLRACE_ASSIGN_OR_RETURN(Body body, WholeBody("endblock"));
    TakeName(name);
    node->bodies.push_back(std::move(body));
    return node;
  }

  StatementOr ParseGeneration() {
    Statement* node = NewStatement(StatementKind::kScope);
    Next();
    MILLRACE_ASSIGN_OR_RETURN(Body body, WholeBody("endgeneration"));
    node->bodies.push_back(std::move(body));
    return node;
  }

  // The output is text, not HTML: whether it is on makes no difference here.
  StatementOr ParseAutoescape() {
    Statement* node = NewStatement(StatementKind::kScope);
    Next();
    MILLRACE_RETURN_IF_ERROR(ParseExpression().status());
    MILLRACE_ASSIGN_OR_RETURN(Body body, WholeBody("endautoescape"));
    node->bodies.push_back(std::move(body));
    return node;
  }

  StatementOr ParsePrint() {
    Statement* node = NewStatement(StatementKind::kPlain);
    Next();
    Body body;
    while (Current().type != TokenType::kBlockEnd) {
      if (!body.empty()) {
        MILLRACE_RETURN_IF_ERROR(ExpectOperator(","));
      }
      Statement* output = NewStatement(StatementKind::kOutput);
      MILLRACE_ASSIGN_OR_RETURN(output->expression, ParseExpression());
      body.push_back(output);
    }
    node->bodies.push_back(std::move(body));
    return node;
  }

  StatementOr ParseUnavailable() {
    Statement* node = NewStatement(StatementKind::kUnavailable);
    node->name = Current().text;
    while (Current().type != TokenType::kBlockEnd &&
           Current().type != TokenType::kEnd) {
      Next();
    }
    return node;
  }

  int loops_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> Parse(absl::string_view source) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return StatementParser(std::move(tokens)).Run();
}

}  // namespace millrace::model::jinja
