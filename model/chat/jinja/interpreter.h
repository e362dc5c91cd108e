#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/jinja/ast.h"
#include "model/chat/jinja/callables.h"
#include "model/chat/jinja/runtime.h"

namespace millrace::model::jinja {

// Variables of one level: the template, a body of a loop, a macro, ...
struct Scope {
  Scope* parent = nullptr;
  bool captured = false;  // by a macro: kept until the rendering ends
  absl::InlinedVector<std::pair<int32_t, Value>, 4> variables;

  void Set(int32_t symbol, Value value);
};

// Runs a program once. Borrows both; must go before the runtime goes.
// One thread.
class Interpreter {
 public:
  Interpreter(const Program& program, Runtime& runtime, int64_t output_max);

  // Makes a variable of the template; before Run.
  void SetVariable(int32_t symbol, Value value) {
    globals_[static_cast<size_t>(symbol)] = std::move(value);
  }

  absl::StatusOr<Text> Run();
  // Line of the statement that failed first, 0 when none is known.
  [[nodiscard]] int failed_line() const { return failed_line_; }

 private:
  using Body = std::vector<const Statement*>;
  enum class Flow { kNext, kBreak, kContinue };
  using FlowOr = absl::StatusOr<Flow>;
  using ValueOr = absl::StatusOr<Value>;

  // A scope for a body; back to the pool at the end unless captured.
  class Inner {
   public:
    Inner(Interpreter& interpreter, Scope* parent);
    ~Inner();
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;
    [[nodiscard]] Scope& scope() { return *scope_; }

   private:
    Interpreter& interpreter_;
    Scope* scope_;
  };

  // statements
  FlowOr RunBody(const Body& body, Scope& scope);
  FlowOr RunStatement(const Statement& statement, Scope& scope);
  absl::Status RunPlain(const Statement& statement, Scope& scope);
  absl::Status RunOutput(const Statement& statement, Scope& scope);
  FlowOr RunIf(const Statement& statement, Scope& scope);
  FlowOr RunFor(const Statement& statement, Scope& scope);
  absl::StatusOr<std::vector<Value>> Filtered(const Statement& statement,
                                              std::vector<Value> items,
                                              Scope& scope);
  FlowOr RunLoop(const Statement& statement, const Value& iterable,
                 int64_t depth0, Scope& scope);
  absl::Status RunSet(const Statement& statement, Scope& scope);
  absl::Status RunSetBlock(const Statement& statement, Scope& scope);
  absl::Status RunCallBlock(const Statement& statement, Scope& scope);
  absl::Status RunFilterBlock(const Statement& statement, Scope& scope);
  FlowOr RunWith(const Statement& statement, Scope& scope);
  // Runs the body in a scope of its own and gives its output.
  ValueOr Capture(const Body& body, Scope& parent);
  ValueOr ThroughFilters(const Expression* filters, Value text, Scope& scope);
  absl::Status Assign(const Expression& target, Value value, Scope& scope);
  ValueOr MakeMacro(const Statement& statement, Scope& scope);

  // expressions
  ValueOr Evaluate(const Expression& expression, Scope& scope);
  ValueOr EvaluateConstant(const Expression& expression, Scope& scope);
  ValueOr EvaluateName(const Expression& expression, Scope& scope);
  ValueOr EvaluateSequence(const Expression& expression, Scope& scope);
  ValueOr EvaluateDict(const Expression& expression, Scope& scope);
  ValueOr EvaluateAttribute(const Expression& expression, Scope& scope);
  ValueOr EvaluateItem(const Expression& expression, Scope& scope);
  ValueOr EvaluateSlice(const Expression& expression, Scope& scope);
  ValueOr EvaluateCall(const Expression& expression, Scope& scope);
  ValueOr EvaluateFilter(const Expression& expression, Scope& scope);
  ValueOr EvaluateUnary(const Expression& expression, Scope& scope);
  ValueOr EvaluateBinary(const Expression& expression, Scope& scope);
  ValueOr EvaluateConcatenation(const Expression& expression, Scope& scope);
  ValueOr EvaluateComparison(const Expression& expression, Scope& scope);
  ValueOr EvaluateLogic(const Expression& expression, Scope& scope);
  ValueOr EvaluateConditional(const Expression& expression, Scope& scope);
  Value Lookup(int32_t symbol, const Scope& scope);

  // calls
  absl::Status EvaluateArguments(const CallArguments& source, Scope& scope,
                                 Arguments& arguments);
  ValueOr EvaluateCallWith(const Expression& expression, Scope& scope,
                           Value caller);
  ValueOr Call(const Value& callee, Arguments& arguments);
  ValueOr CallMacro(const MacroObject& macro, Arguments& arguments);
  absl::Status BindMacro(const Statement& macro, Arguments& arguments,
                         Scope& scope);
  absl::Status BindRest(const Statement& macro, Arguments& arguments,
                        size_t used, Scope& scope);
  ValueOr CallLoop(const LoopObject& loop, Arguments& arguments);

  const Program& program_;
  Runtime& runtime_;
  std::vector<Value> constants_;
  std::vector<Value> globals_;  // by symbol; kMissing where there is none
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> free_scopes_;
  std::vector<Value> block_texts_;  // what filters of open blocks work on
  TextWriter output_;
  TextWriter* writer_ = &output_;  // where output goes now
  int failed_line_ = 0;
};

}  // namespace millrace::model::jinja
