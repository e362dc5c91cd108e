#include "model/chat/jinja/interpreter.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/print.h"

namespace millrace::model::jinja {

void Scope::Set(int32_t symbol, Value value) {
  for (auto& [known, present] : variables) {
    if (known == symbol) {
      present = std::move(value);
      return;
    }
  }
  variables.emplace_back(symbol, std::move(value));
}

Interpreter::Inner::Inner(Interpreter& interpreter, Scope* parent)
    : interpreter_(interpreter) {
  if (interpreter_.free_scopes_.empty()) {
    interpreter_.scopes_.push_back(std::make_unique<Scope>());
    scope_ = interpreter_.scopes_.back().get();
  } else {
    scope_ = interpreter_.free_scopes_.back();
    interpreter_.free_scopes_.pop_back();
  }
  scope_->parent = parent;
}

Interpreter::Inner::~Inner() {
  if (!scope_->captured) {
    scope_->variables.clear();
    interpreter_.free_scopes_.push_back(scope_);
  }
}

Interpreter::Interpreter(const Program& program, Runtime& runtime,
                         int64_t output_max)
    : program_(program),
      runtime_(runtime),
      globals_(program.symbols.size(), Value::Missing()),
      output_(runtime, output_max) {}

absl::StatusOr<Text> Interpreter::Run() {
  for (const Program::Constant& constant : program_.constants) {
    switch (constant.kind) {
      case Kind::kBool:
        constants_.push_back(Value::Bool(constant.boolean));
        break;
      case Kind::kInteger:
        constants_.push_back(Value::Of(constant.integer));
        break;
      case Kind::kFloat:
        constants_.push_back(Value::Float(constant.number));
        break;
      case Kind::kString: {
        MILLRACE_ASSIGN_OR_RETURN(Value text,
                                  runtime_.heap().MakeString(constant.text));
        constants_.push_back(std::move(text));
        break;
      }
      default:
        constants_.push_back(Value::None());
        break;
    }
  }
  for (size_t i = 0; i < globals_.size(); ++i) {
    const Native* native = FindGlobal(program_.symbols[i]);
    if (native != nullptr && globals_[i].Is(Kind::kMissing)) {
      MILLRACE_ASSIGN_OR_RETURN(FunctionObject * function,
                                runtime_.heap().New<FunctionObject>());
      function->native = native;
      globals_[i] = Value::Of(Kind::kFunction, function);
    }
  }
  Inner top(*this, nullptr);
  MILLRACE_RETURN_IF_ERROR(RunBody(program_.body, top.scope()).status());
  MILLRACE_RETURN_IF_ERROR(output_.status());
  return output_.Take();
}

Interpreter::FlowOr Interpreter::RunBody(const Body& body, Scope& scope) {
  for (const Statement* statement : body) {
    MILLRACE_ASSIGN_OR_RETURN(const Flow flow, RunStatement(*statement, scope));
    if (flow != Flow::kNext) {
      return flow;
    }
  }
  return Flow::kNext;
}

Interpreter::FlowOr Interpreter::RunStatement(const Statement& statement,
                                              Scope& scope) {
  const DepthGuard guard(runtime_);
  absl::Status status = guard.status();
  status.Update(runtime_.Spend(1));
  FlowOr flow = Flow::kNext;
  if (status.ok()) {
    switch (statement.kind) {
      case StatementKind::kIf:
        flow = RunIf(statement, scope);
        break;
      case StatementKind::kFor:
        flow = RunFor(statement, scope);
        break;
      case StatementKind::kWith:
        flow = RunWith(statement, scope);
        break;
      case StatementKind::kScope: {
        Inner inner(*this, &scope);
        flow = RunBody(statement.bodies[0], inner.scope());
        break;
      }
      case StatementKind::kPlain:
        flow = RunBody(statement.bodies[0], scope);
        break;
      case StatementKind::kBreak:
        return Flow::kBreak;
      case StatementKind::kContinue:
        return Flow::kContinue;
      default:
        status = RunPlain(statement, scope);
        break;
    }
  }
  if (status.ok()) {
    status = flow.status();
  }
  if (!status.ok()) {
    failed_line_ = failed_line_ == 0 ? statement.line : failed_line_;
    return status;
  }
  return flow;
}

absl::Status Interpreter::RunPlain(const Statement& statement, Scope& scope) {
  switch (statement.kind) {
    case StatementKind::kData: {
      const Value& text = constants_[static_cast<size_t>(statement.constant)];
      return AppendPrinted(runtime_, text, *writer_);
    }
    case StatementKind::kOutput:
      return RunOutput(statement, scope);
    case StatementKind::kSet:
      return RunSet(statement, scope);
    case StatementKind::kSetBlock:
      return RunSetBlock(statement, scope);
    case StatementKind::kCall:
      return RunCallBlock(statement, scope);
    case StatementKind::kFilter:
      return RunFilterBlock(statement, scope);
    case StatementKind::kMacro: {
      MILLRACE_ASSIGN_OR_RETURN(Value macro, MakeMacro(statement, scope));
      scope.Set(statement.symbol, std::move(macro));
      return absl::OkStatus();
    }
    default:
      return Fail(absl::StrCat("'", statement.name,
                               "' is not available: a chat template is one "
                               "text, there are no others to load"));
  }
}

absl::Status Interpreter::RunOutput(const Statement& statement, Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(const Value value,
                            Evaluate(*statement.expression, scope));
  return AppendPrinted(runtime_, value, *writer_);
}

Interpreter::FlowOr Interpreter::RunIf(const Statement& statement,
                                       Scope& scope) {
  for (size_t i = 0; i < statement.bodies.size(); ++i) {
    bool holds = true;
    if (i < statement.conditions.size()) {
      MILLRACE_ASSIGN_OR_RETURN(const Value condition,
                                Evaluate(*statement.conditions[i], scope));
      holds = IsTrue(condition);
    }
    if (holds) {
      return RunBody(statement.bodies[i], scope);
    }
  }
  return Flow::kNext;
}

Interpreter::FlowOr Interpreter::RunFor(const Statement& statement,
                                        Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(const Value iterable,
                            Evaluate(*statement.expression, scope));
  return RunLoop(statement, iterable, 0, scope);
}

absl::StatusOr<std::vector<Value>> Interpreter::Filtered(
    const Statement& statement, std::vector<Value> items, Scope& scope) {
  std::vector<Value> kept;
  for (Value& item : items) {
    Inner inner(*this, &scope);
    MILLRACE_RETURN_IF_ERROR(Assign(*statement.target, item, inner.scope()));
    MILLRACE_ASSIGN_OR_RETURN(const Value holds,
                              Evaluate(*statement.condition, inner.scope()));
    if (IsTrue(holds)) {
      kept.push_back(std::move(item));
    }
  }
  return kept;
}

Interpreter::FlowOr Interpreter::RunLoop(const Statement& statement,
                                         const Value& iterable, int64_t depth0,
                                         Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<Value> items,
                            ItemsOf(runtime_, iterable));
  if (statement.condition != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(items,
                              Filtered(statement, std::move(items), scope));
  }
  if (items.empty()) {
    if (statement.bodies.size() > 1) {
      // A break in there belongs to the loop around.
      Inner inner(*this, &scope);
      return RunBody(statement.bodies[1], inner.scope());
    }
    return Flow::kNext;
  }
  const auto items_bytes =
      static_cast<int64_t>(items.capacity() * sizeof(Value));
  MILLRACE_RETURN_IF_ERROR(runtime_.heap().Charge(items_bytes));
  MILLRACE_ASSIGN_OR_RETURN(LoopObject * loop,
                            runtime_.heap().New<LoopObject>());
  loop->items = std::move(items);
  loop->depth0 = depth0;
  if (statement.recursive) {
    loop->recursive = &statement;
    loop->scope = &scope;
    for (Scope* at = &scope; at != nullptr; at = at->parent) {
      at->captured = true;
    }
  }
  const size_t count = loop->items.size();
  for (; loop->index < count; ++loop->index) {
    MILLRACE_RETURN_IF_ERROR(runtime_.Spend(2));
    Inner inner(*this, &scope);
    inner.scope().Set(kSymbolLoop, Value::Of(Kind::kLoop, loop));
    MILLRACE_RETURN_IF_ERROR(
        Assign(*statement.target, loop->items[loop->index], inner.scope()));
    MILLRACE_ASSIGN_OR_RETURN(const Flow flow,
                              RunBody(statement.bodies[0], inner.scope()));
    if (flow == Flow::kBreak) {
      break;
    }
  }
  // `loop` may have been kept, but it tells nothing any more.
  loop->index = 0;
  std::vector<Value>().swap(loop->items);
  runtime_.heap().Release(items_bytes);
  return Flow::kNext;
}

absl::Status Interpreter::RunSet(const Statement& statement, Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(Value value,
                            Evaluate(*statement.expression, scope));
  return Assign(*statement.target, std::move(value), scope);
}

Interpreter::ValueOr Interpreter::Capture(const Body& body, Scope& parent) {
  TextWriter captured(runtime_);
  TextWriter* const outer = std::exchange(writer_, &captured);
  Inner inner(*this, &parent);
  const FlowOr flow = RunBody(body, inner.scope());
  writer_ = outer;
  MILLRACE_RETURN_IF_ERROR(flow.status());
  return Finish(runtime_, captured);
}

Interpreter::ValueOr Interpreter::ThroughFilters(const Expression* filters,
                                                 Value text, Scope& scope) {
  if (filters == nullptr) {
    return text;
  }
  block_texts_.push_back(std::move(text));
  ValueOr result = Evaluate(*filters, scope);
  block_texts_.pop_back();
  return result;
}

absl::Status Interpreter::RunSetBlock(const Statement& statement,
                                      Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(Value text, Capture(statement.bodies[0], scope));
  MILLRACE_ASSIGN_OR_RETURN(
      Value value,
      ThroughFilters(statement.expression, std::move(text), scope));
  return Assign(*statement.target, std::move(value), scope);
}

absl::Status Interpreter::RunFilterBlock(const Statement& statement,
                                         Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(Value text, Capture(statement.bodies[0], scope));
  MILLRACE_ASSIGN_OR_RETURN(
      const Value value,
      ThroughFilters(statement.expression, std::move(text), scope));
  return AppendPrinted(runtime_, value, *writer_);
}

absl::Status Interpreter::RunCallBlock(const Statement& statement,
                                       Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(Value caller, MakeMacro(statement, scope));
  MILLRACE_ASSIGN_OR_RETURN(
      const Value value,
      EvaluateCallWith(*statement.expression, scope, std::move(caller)));
  return AppendPrinted(runtime_, value, *writer_);
}

Interpreter::FlowOr Interpreter::RunWith(const Statement& statement,
                                         Scope& scope) {
  Inner inner(*this, &scope);
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(Value value,
                              Evaluate(*statement.conditions[i], scope));
    MILLRACE_RETURN_IF_ERROR(
        Assign(*statement.targets[i], std::move(value), inner.scope()));
  }
  return RunBody(statement.bodies[0], inner.scope());
}

Interpreter::ValueOr Interpreter::MakeMacro(const Statement& statement,
                                            Scope& scope) {
  MILLRACE_ASSIGN_OR_RETURN(MacroObject * macro,
                            runtime_.heap().New<MacroObject>());
  macro->statement = &statement;
  macro->closure = &scope;
  for (Scope* at = &scope; at != nullptr && !at->captured; at = at->parent) {
    at->captured = true;
    MILLRACE_RETURN_IF_ERROR(
        runtime_.heap().Charge(static_cast<int64_t>(sizeof(Scope))));
  }
  return Value::Of(Kind::kMacro, macro);
}

absl::Status Interpreter::Assign(const Expression& target, Value value,
                                 Scope& scope) {
  if (target.kind == ExpressionKind::kName) {
    scope.Set(target.symbol, std::move(value));
    return absl::OkStatus();
  }
  if (target.kind == ExpressionKind::kTuple) {
    MILLRACE_ASSIGN_OR_RETURN(std::vector<Value> items,
                              ItemsOf(runtime_, value));
    if (items.size() != target.items.size()) {
      return Fail(absl::StrCat("cannot unpack ", items.size(), " values into ",
                               target.items.size()));
    }
    for (size_t i = 0; i < items.size(); ++i) {
      MILLRACE_RETURN_IF_ERROR(
          Assign(*target.items[i], std::move(items[i]), scope));
    }
    return absl::OkStatus();
  }
  const Value space = Lookup(target.symbol, scope);
  if (!space.Is(Kind::kNamespace)) {
    return Fail("cannot assign attribute on non-namespace object");
  }
  if (absl::StartsWith(target.name, "_")) {
    return Fail(absl::StrCat("namespace name '", target.name, "'"));
  }
  if (Value* present = space.dict()->Find(target.name)) {
    *present = std::move(value);
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(const Value key,
                            runtime_.heap().MakeString(target.name));
  return runtime_.heap().Put(*space.dict(), key, std::move(value));
}

}  // namespace millrace::model::jinja
