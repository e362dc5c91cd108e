#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/interpreter.h"
#include "model/chat/jinja/operators.h"

namespace millrace::model::jinja {

absl::Status Interpreter::EvaluateArguments(const CallArguments& source,
                                            Scope& scope,
                                            Arguments& arguments) {
  for (const Expression* item : source.positional) {
    MILLRACE_ASSIGN_OR_RETURN(Value value, Evaluate(*item, scope));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, item] : source.named) {
    MILLRACE_ASSIGN_OR_RETURN(Value value, Evaluate(*item, scope));
    arguments.named.emplace_back(name, std::move(value));
  }
  if (source.star != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(const Value list, Evaluate(*source.star, scope));
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                              ItemsOf(runtime_, list));
    arguments.positional.insert(arguments.positional.end(), items.begin(),
                                items.end());
  }
  if (source.star_star != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(const Value dict,
                              Evaluate(*source.star_star, scope));
    if (!dict.Is(Kind::kDict)) {
      return Fail("the argument after ** must be a dictionary");
    }
    for (const auto& [key, value] : dict.dict()->entries) {
      if (!key.Is(Kind::kString)) {
        return Fail("the keys of the argument after ** must be strings");
      }
      arguments.named.emplace_back(std::string(key.bytes()), value);
      arguments.untrusted_names |= key.text().AnyUntrusted();
    }
  }
  return absl::OkStatus();
}

Interpreter::ValueOr Interpreter::EvaluateCall(const Expression& expression,
                                               Scope& scope) {
  return EvaluateCallWith(expression, scope, Value::Missing());
}

// `caller` is what a call block passes on; kMissing elsewhere.
Interpreter::ValueOr Interpreter::EvaluateCallWith(const Expression& expression,
                                                   Scope& scope, Value caller) {
  const Expression& callee = *expression.items[0];
  Arguments arguments;
  const Native* method = nullptr;
  Value function;
  if (callee.kind == ExpressionKind::kAttribute) {
    // A method is called without making a value of it first.
    MILLRACE_ASSIGN_OR_RETURN(Value receiver,
                              Evaluate(*callee.items[0], scope));
    method = FindMethod(receiver, callee.name);
    if (method == nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(function,
                                GetAttribute(runtime_, receiver, callee.name));
    } else {
      arguments.positional.push_back(std::move(receiver));
    }
  } else {
    MILLRACE_ASSIGN_OR_RETURN(function, Evaluate(callee, scope));
  }
  MILLRACE_RETURN_IF_ERROR(
      EvaluateArguments(expression.arguments, scope, arguments));
  if (!caller.Is(Kind::kMissing)) {
    arguments.named.emplace_back("caller", std::move(caller));
  }
  return method != nullptr ? CallNative(runtime_, *method, arguments)
                           : Call(function, arguments);
}

Interpreter::ValueOr Interpreter::EvaluateFilter(const Expression& expression,
                                                 Scope& scope) {
  const bool is_test = expression.kind == ExpressionKind::kTest;
  if (expression.native == nullptr) {
    return Fail(absl::StrCat("No ", is_test ? "test" : "filter", " named '",
                             Printable(expression.name), "' found."));
  }
  Arguments arguments;
  if (expression.items[0] == nullptr) {
    arguments.positional.push_back(block_texts_.back());
  } else {
    MILLRACE_ASSIGN_OR_RETURN(Value value,
                              Evaluate(*expression.items[0], scope));
    arguments.positional.push_back(std::move(value));
  }
  MILLRACE_RETURN_IF_ERROR(
      EvaluateArguments(expression.arguments, scope, arguments));
  return CallNative(runtime_, *expression.native, arguments);
}

Interpreter::ValueOr Interpreter::Call(const Value& callee,
                                       Arguments& arguments) {
  switch (callee.kind()) {
    case Kind::kFunction: {
      const auto& function = *callee.As<FunctionObject>();
      if (!function.receiver.Is(Kind::kMissing)) {
        arguments.positional.insert(arguments.positional.begin(),
                                    function.receiver);
      }
      return CallNative(runtime_, *function.native, arguments);
    }
    case Kind::kMacro:
      return CallMacro(*callee.As<MacroObject>(), arguments);
    case Kind::kLoop:
      return CallLoop(*callee.As<LoopObject>(), arguments);
    case Kind::kJoiner: {
      auto& joiner = *callee.As<JoinerObject>();
      if (!std::exchange(joiner.used, true)) {
        return runtime_.heap().MakeString("");
      }
      return joiner.separator;
    }
    case Kind::kUndefined:
      return FailUndefined(callee);
    default:
      return Fail(
          absl::StrCat("'", TypeName(callee), "' object is not callable"));
  }
}

// Gives what is left after the parameters to varargs, kwargs and caller.
absl::Status Interpreter::BindRest(const Statement& macro, Arguments& arguments,
                                   size_t used, Scope& scope) {
  if (macro.uses_caller) {
    const auto found =
        std::find_if(arguments.named.begin(), arguments.named.end(),
                     [](const auto& entry) { return entry.first == "caller"; });
    if (found == arguments.named.end()) {
      scope.Set(kSymbolCaller,
                runtime_.heap().MakeUndefined("No caller defined"));
    } else {
      scope.Set(kSymbolCaller, std::move(found->second));
      arguments.named.erase(found);
    }
  }
  if (macro.uses_varargs) {
    std::vector<Value> rest(
        arguments.positional.begin() + static_cast<int64_t>(used),
        arguments.positional.end());
    MILLRACE_ASSIGN_OR_RETURN(Value tuple,
                              runtime_.heap().MakeTuple(std::move(rest)));
    scope.Set(kSymbolVarargs, std::move(tuple));
  } else if (arguments.positional.size() > used) {
    return Fail(absl::StrCat("macro '", macro.name, "' takes not more than ",
                             macro.parameters.size(), " argument(s)"));
  }
  if (macro.uses_kwargs) {
    MILLRACE_ASSIGN_OR_RETURN(DictObject * dict,
                              runtime_.heap().New<DictObject>());
    for (auto& [name, value] : arguments.named) {
      MILLRACE_ASSIGN_OR_RETURN(
          const Value key,
          runtime_.heap().MakeString(Text(name, arguments.untrusted_names)));
      MILLRACE_RETURN_IF_ERROR(
          runtime_.heap().Put(*dict, key, std::move(value)));
    }
    scope.Set(kSymbolKwargs, Value::Of(Kind::kDict, dict));
  } else if (!arguments.named.empty()) {
    return Fail(absl::StrCat("macro '", macro.name,
                             "' takes no keyword argument '",
                             Printable(arguments.named[0].first), "'"));
  }
  return absl::OkStatus();
}

absl::Status Interpreter::BindMacro(const Statement& macro,
                                    Arguments& arguments, Scope& scope) {
  const size_t count = macro.parameters.size();
  const size_t required = count - macro.defaults.size();
  const size_t used = std::min(count, arguments.positional.size());
  for (size_t i = 0; i < count; ++i) {
    const int32_t symbol = macro.parameters[i];
    const std::string& name = program_.symbols[static_cast<size_t>(symbol)];
    const auto named =
        std::find_if(arguments.named.begin(), arguments.named.end(),
                     [&](const auto& entry) { return entry.first == name; });
    if (i < used) {
      if (named != arguments.named.end()) {
        return Fail(absl::StrCat("macro '", macro.name,
                                 "' got two values for argument '", name, "'"));
      }
      scope.Set(symbol, std::move(arguments.positional[i]));
    } else if (named != arguments.named.end()) {
      scope.Set(symbol, std::move(named->second));
      arguments.named.erase(named);
    } else if (i >= required) {
      MILLRACE_ASSIGN_OR_RETURN(Value value,
                                Evaluate(*macro.defaults[i - required], scope));
      scope.Set(symbol, std::move(value));
    } else {
      scope.Set(symbol, runtime_.heap().MakeUndefined(absl::StrCat(
                            "parameter '", name, "' was not provided")));
    }
  }
  return BindRest(macro, arguments, used, scope);
}

Interpreter::ValueOr Interpreter::CallMacro(const MacroObject& macro,
                                            Arguments& arguments) {
  const DepthGuard guard(runtime_);
  MILLRACE_RETURN_IF_ERROR(guard.status());
  Inner inner(*this, macro.closure);
  MILLRACE_RETURN_IF_ERROR(
      BindMacro(*macro.statement, arguments, inner.scope()));
  return Capture(macro.statement->bodies[0], inner.scope());
}

Interpreter::ValueOr Interpreter::CallLoop(const LoopObject& loop,
                                           Arguments& arguments) {
  if (loop.recursive == nullptr) {
    return Fail(
        "The loop must have the 'recursive' marker to be called recursively.");
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    return Fail("loop() takes the items to go through");
  }
  TextWriter captured(runtime_);
  TextWriter* const outer = std::exchange(writer_, &captured);
  const FlowOr flow = RunLoop(*loop.recursive, arguments.positional[0],
                              loop.depth0 + 1, *loop.scope);
  writer_ = outer;
  MILLRACE_RETURN_IF_ERROR(flow.status());
  return Finish(runtime_, captured);
}

}  // namespace millrace::model::jinja
