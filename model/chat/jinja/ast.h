#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/runtime.h"

namespace millrace::model::jinja {

struct Expression;

struct CallArguments {
  std::vector<const Expression*> positional;
  std::vector<std::pair<std::string, const Expression*>> named;
  const Expression* star = nullptr;       // *list
  const Expression* star_star = nullptr;  // **dict
};

enum class ExpressionKind {
  kConstant,
  kName,
  kList,
  kTuple,
  kDict,       // items: key, value, key, value, ...
  kAttribute,  // items[0].name
  kItem,       // items[0][items[1]]
  kSlice,      // items[0][items[1]:items[2]:items[3]], null where left out
  kCall,       // items[0](arguments)
  kFilter,     // items[0] | name(arguments); items[0] null: the block's text
  kTest,       // items[0] is name(arguments)
  kNot,
  kNegative,
  kPositive,
  kBinary,
  kConcatenation,
  kComparison,  // items[0] comparisons[0] items[1] ...
  kAnd,
  kOr,
  kConditional,         // items[0] if items[1] else items[2], which may be null
  kNamespaceAttribute,  // target of a set only: name is the attribute
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  int line = 1;
  int32_t symbol = -1;    // of a name or the namespace that is set
  int32_t constant = -1;  // index into Program's constants
  BinaryOperator op = BinaryOperator::kAdd;
  const Native* native = nullptr;  // filter or test; null: unknown, an error
                                   // once it is reached
  std::string name;
  std::vector<const Expression*> items;
  std::vector<Comparison> comparisons;
  CallArguments arguments;
};

enum class StatementKind {
  kData,      // the constant as text
  kOutput,    // {{ expression }}
  kIf,        // conditions[i] -> bodies[i]; one body more: else
  kFor,       // target in expression if condition
  kSet,       // target = expression
  kSetBlock,  // target = body through filters of expression, if any
  kMacro,
  kCall,    // {% call(parameters) expression %} body
  kFilter,  // body through filters of expression
  kWith,    // targets[i] = conditions[i] around body
  kScope,   // body in a scope of its own
  kPlain,   // body as it is: generation
  kBreak,
  kContinue,
  kUnavailable,  // include, import, ...: an error once it is reached
};

struct Statement {
  StatementKind kind = StatementKind::kData;
  int line = 1;
  int32_t constant = -1;
  int32_t symbol = -1;  // name of a macro
  std::string name;     // of a macro, or what is unavailable
  const Expression* target = nullptr;
  const Expression* expression = nullptr;
  const Expression* condition = nullptr;
  bool recursive = false;
  std::vector<const Expression*> targets;
  std::vector<const Expression*> conditions;
  std::vector<std::vector<const Statement*>> bodies;
  // Of a macro or call block: names, and default values of the last ones.
  std::vector<int32_t> parameters;
  std::vector<const Expression*> defaults;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};

// A parsed template. Immutable after parsing; any thread. Nodes are owned in
// flat lists, so that deep nesting costs no stack on the way down.
struct Program {
  // What a literal stands for, made into a Value by each rendering.
  struct Constant {
    Kind kind = Kind::kNone;
    std::string text = {};
    Integer integer = 0;
    double number = 0;
    bool boolean = false;
  };
  std::vector<std::unique_ptr<Expression>> expressions;
  std::vector<std::unique_ptr<Statement>> statements;
  std::vector<Constant> constants;
  std::vector<std::string> symbols;  // names of variables
  std::vector<const Statement*> body;
};

// Symbols that macros know without being told.
inline constexpr int32_t kSymbolLoop = 0;
inline constexpr int32_t kSymbolCaller = 1;
inline constexpr int32_t kSymbolVarargs = 2;
inline constexpr int32_t kSymbolKwargs = 3;

}  // namespace millrace::model::jinja
