#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/jinja/ast.h"
#include "model/chat/jinja/lexer.h"

namespace millrace::model::jinja {

// Parses a template. Errors are kInvalidArgument and begin with "line N: ".
absl::StatusOr<std::unique_ptr<Program>> Parse(absl::string_view source);

// Reads tokens and makes nodes: what expressions and statements share.
class ParserBase {
 protected:
  explicit ParserBase(std::vector<Token> tokens);

  [[nodiscard]] const Token& Current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& Ahead() const;
  void Next();
  [[nodiscard]] bool SeesName(absl::string_view name) const;
  [[nodiscard]] bool SeesOperator(absl::string_view sign) const;
  bool TakeName(absl::string_view name);
  bool TakeOperator(absl::string_view sign);
  absl::Status ExpectOperator(absl::string_view sign);
  absl::Status ExpectName(absl::string_view name);
  absl::StatusOr<std::string> ExpectAnyName();
  [[nodiscard]] absl::Status Unexpected() const;

  Expression* NewExpression(ExpressionKind kind);
  Statement* NewStatement(StatementKind kind);
  int32_t AddConstant(Program::Constant constant);
  int32_t Symbol(absl::string_view name);

  // Levels of the source that are open; an error past the limit.
  class Nesting {
   public:
    explicit Nesting(ParserBase& parser) : parser_(parser) {
      ++parser_.nesting_;
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    [[nodiscard]] absl::Status status() const;

   private:
    ParserBase& parser_;
  };

  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  // Macros whose bodies are being read, innermost last.
  std::vector<Statement*> macros_;
  // Filters and tests that do not exist. Those inside a branch are taken out
  // again: they count only once they are reached.
  std::vector<absl::Status> unknown_;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  absl::flat_hash_map<std::string, int32_t> symbols_;
};

using ExpressionOr = absl::StatusOr<const Expression*>;

class ExpressionParser : public ParserBase {
 protected:
  using ParserBase::ParserBase;

  // One expression; without a conditional one where `with_conditional` is off.
  ExpressionOr ParseExpression(bool with_conditional = true);
  // An expression, or several with commas as a tuple.
  ExpressionOr ParseTuple(bool with_conditional, bool in_parentheses);
  // What a set or a loop assigns to: a name, a tuple of such, ns.attribute.
  ExpressionOr ParseTarget(bool with_namespace);
  // Filters behind `value`, which is null for the text of a block. With
  // `inline_first` the first one has no bar in front.
  ExpressionOr ParseFilters(const Expression* value, bool inline_first);

 private:
  ExpressionOr ParseOr();
  ExpressionOr ParseAnd();
  ExpressionOr ParseNot();
  ExpressionOr ParseComparison();
  ExpressionOr ParseSum();
  ExpressionOr ParseConcatenation();
  ExpressionOr ParseProduct();
  ExpressionOr ParsePower();
  ExpressionOr ParseUnary(bool with_filters);
  ExpressionOr ParsePrimary();
  ExpressionOr ParseName();
  ExpressionOr ParseNumber();
  ExpressionOr ParseList();
  ExpressionOr ParseDict();
  ExpressionOr ParsePostfix(const Expression* value);
  ExpressionOr ParseFilterChain(const Expression* value);
  ExpressionOr ParseSubscript(const Expression* value);
  ExpressionOr ParseCall(const Expression* value);
  ExpressionOr ParseTest(const Expression* value);
  ExpressionOr ParseOneTarget(bool with_namespace);
  absl::StatusOr<CallArguments> ParseArguments();
  absl::Status ParseArgument(CallArguments& arguments);
  absl::StatusOr<std::string> ParseDottedName();
  ExpressionOr Binary(BinaryOperator op, const Expression* left,
                      const Expression* right);
  // Looks the filter or test up.
  void Resolve(Expression& node, absl::string_view what, const Native* native);
};

}  // namespace millrace::model::jinja
