#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "model/chat/jinja/parser.h"

namespace millrace::model::jinja {
namespace {

// A level takes some 2 KiB of stack with sanitizers.
constexpr int kNestingMax = 200;

std::string Describe(const Token& token) {
  switch (token.type) {
    case TokenType::kData:
      return "template text";
    case TokenType::kVariableBegin:
      return "begin of print statement";
    case TokenType::kVariableEnd:
      return "end of print statement";
    case TokenType::kBlockBegin:
      return "begin of statement block";
    case TokenType::kBlockEnd:
      return "end of statement block";
    case TokenType::kEnd:
      return "end of template";
    case TokenType::kName:
    case TokenType::kString:
    case TokenType::kInteger:
    case TokenType::kFloat:
    case TokenType::kOperator:
      break;
  }
  return Printable(token.text, 60);
}

}  // namespace

absl::Status ParserBase::Nesting::status() const {
  if (parser_.nesting_ > kNestingMax) {
    return SyntaxError(parser_.Current().line,
                       absl::StrCat("nested deeper than ", kNestingMax,
                                    " levels, which is the limit"));
  }
  return absl::OkStatus();
}

ParserBase::ParserBase(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  for (const absl::string_view known :
       {"loop", "caller", "varargs", "kwargs"}) {
    Symbol(known);
  }
}

const Token& ParserBase::Ahead() const {
  return at_ + 1 < tokens_.size() ? tokens_[at_ + 1] : tokens_.back();
}

void ParserBase::Next() {
  if (at_ + 1 < tokens_.size()) {
    ++at_;
  }
}

bool ParserBase::SeesName(absl::string_view name) const {
  return Current().type == TokenType::kName && Current().text == name;
}

bool ParserBase::SeesOperator(absl::string_view sign) const {
  return Current().type == TokenType::kOperator && Current().text == sign;
}

bool ParserBase::TakeName(absl::string_view name) {
  const bool found = SeesName(name);
  if (found) {
    Next();
  }
  return found;
}

bool ParserBase::TakeOperator(absl::string_view sign) {
  const bool found = SeesOperator(sign);
  if (found) {
    Next();
  }
  return found;
}

absl::Status ParserBase::ExpectOperator(absl::string_view sign) {
  return TakeOperator(sign)
             ? absl::OkStatus()
             : SyntaxError(Current().line,
                           absl::StrCat("expected '", sign, "', got '",
                                        Describe(Current()), "'"));
}

absl::Status ParserBase::ExpectName(absl::string_view name) {
  return TakeName(name)
             ? absl::OkStatus()
             : SyntaxError(Current().line,
                           absl::StrCat("expected '", name, "', got '",
                                        Describe(Current()), "'"));
}

absl::StatusOr<std::string> ParserBase::ExpectAnyName() {
  if (Current().type != TokenType::kName) {
    return Unexpected();
  }
  std::string name = Current().text;
  Next();
  return name;
}

absl::Status ParserBase::Unexpected() const {
  return SyntaxError(Current().line,
                     absl::StrCat("unexpected '", Describe(Current()), "'"));
}

Expression* ParserBase::NewExpression(ExpressionKind kind) {
  program_->expressions.push_back(std::make_unique<Expression>());
  Expression* node = program_->expressions.back().get();
  node->kind = kind;
  node->line = Current().line;
  return node;
}

Statement* ParserBase::NewStatement(StatementKind kind) {
  program_->statements.push_back(std::make_unique<Statement>());
  Statement* node = program_->statements.back().get();
  node->kind = kind;
  node->line = Current().line;
  return node;
}

int32_t ParserBase::AddConstant(Program::Constant constant) {
  program_->constants.push_back(std::move(constant));
  return static_cast<int32_t>(program_->constants.size()) - 1;
}

int32_t ParserBase::Symbol(absl::string_view name) {
  const auto [found, added] = symbols_.try_emplace(
      std::string(name), static_cast<int32_t>(program_->symbols.size()));
  if (added) {
    program_->symbols.emplace_back(name);
  }
  return found->second;
}

}  // namespace millrace::model::jinja
