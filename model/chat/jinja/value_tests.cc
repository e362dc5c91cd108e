#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/print.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

template <Kind kind>
absl::StatusOr<Value> KindTest(Runtime& /*runtime*/, Arguments& arguments) {
  return Value::Bool(arguments.positional[0].Is(kind));
}

template <bool (*holds)(const Value&)>
absl::StatusOr<Value> ValueTest(Runtime& /*runtime*/, Arguments& arguments) {
  return Value::Bool(holds(arguments.positional[0]));
}

template <Comparison comparison>
absl::StatusOr<Value> CompareTest(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(
      const bool result, Compare(runtime, comparison, arguments.positional[0],
                                 arguments.positional[1]));
  return Value::Bool(result);
}

bool IsDefined(const Value& value) { return !value.Is(Kind::kUndefined); }
bool IsNumber(const Value& value) { return value.IsNumber(); }
bool IsFalse(const Value& value) {
  return value.Is(Kind::kBool) && !value.boolean();
}
bool IsTrueItself(const Value& value) {
  return value.Is(Kind::kBool) && value.boolean();
}
bool IsMapping(const Value& value) { return value.Is(Kind::kDict); }
bool Never(const Value& /*value*/) { return false; }

bool IsCallable(const Value& value) {
  return value.Is(Kind::kFunction) || value.Is(Kind::kMacro) ||
         value.Is(Kind::kLoop) || value.Is(Kind::kJoiner) ||
         value.Is(Kind::kUndefined);
}

bool IsIterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kIterator:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

// Has a length and takes an index.
bool IsSequenceLike(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kRange:
      return true;
    default:
      return false;
  }
}

template <bool odd>
absl::StatusOr<Value> ParityTest(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Value rest,
                            Apply(runtime, BinaryOperator::kModulo,
                                  arguments.positional[0], Value::Of(2)));
  return Value::Bool(rest.IsNumber() && rest.number() == (odd ? 1 : 0));
}

absl::StatusOr<Value> DivisibleTest(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(
      const Value rest,
      Apply(runtime, BinaryOperator::kModulo, arguments.positional[0],
            arguments.positional[1]));
  return Value::Bool(rest.IsNumber() && rest.number() == 0);
}

absl::StatusOr<Value> SameAsTest(Runtime& runtime, Arguments& arguments) {
  const Value& a = arguments.positional[0];
  const Value& b = arguments.positional[1];
  if (a.kind() != b.kind()) {
    return Value::Bool(false);
  }
  if (a.IsNumber() || a.Is(Kind::kString) || a.Is(Kind::kNone) ||
      a.Is(Kind::kUndefined)) {
    MILLRACE_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, a, b));
    return Value::Bool(equal);
  }
  return Value::Bool(a.object() == b.object());
}

template <bool upper>
absl::StatusOr<Value> CaseTest(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text text,
                            TextOf(runtime, arguments.positional[0]));
  MILLRACE_ASSIGN_OR_RETURN(Value string, runtime.heap().MakeString(text));
  Arguments call{.positional = {std::move(string)}, .named = {}};
  return CallNative(runtime, *FindStringMethod(upper ? "isupper" : "islower"),
                    call);
}

template <const Native* (*find)(absl::string_view)>
absl::StatusOr<Value> NameTest(Runtime& /*runtime*/, Arguments& arguments) {
  const Value& name = arguments.positional[0];
  return Value::Bool(name.Is(Kind::kString) && find(name.bytes()) != nullptr);
}

constexpr Native kTests[] = {
    {"!=", "a,b", 2, CompareTest<Comparison::kNotEqual>},
    {"<", "a,b", 2, CompareTest<Comparison::kLess>},
    {"<=", "a,b", 2, CompareTest<Comparison::kLessOrEqual>},
    {"==", "a,b", 2, CompareTest<Comparison::kEqual>},
    {">", "a,b", 2, CompareTest<Comparison::kGreater>},
    {">=", "a,b", 2, CompareTest<Comparison::kGreaterOrEqual>},
    {"boolean", "value", 1, KindTest<Kind::kBool>},
    {"callable", "value", 1, ValueTest<IsCallable>},
    {"defined", "value", 1, ValueTest<IsDefined>},
    {"divisibleby", "value,num", 2, DivisibleTest},
    {"eq", "a,b", 2, CompareTest<Comparison::kEqual>},
    {"equalto", "a,b", 2, CompareTest<Comparison::kEqual>},
    {"escaped", "value", 1, ValueTest<Never>},
    {"even", "value", 1, ParityTest<false>},
    {"false", "value", 1, ValueTest<IsFalse>},
    {"filter", "value", 1, NameTest<FindFilter>},
    {"float", "value", 1, KindTest<Kind::kFloat>},
    {"ge", "a,b", 2, CompareTest<Comparison::kGreaterOrEqual>},
    {"greaterthan", "a,b", 2, CompareTest<Comparison::kGreater>},
    {"gt", "a,b", 2, CompareTest<Comparison::kGreater>},
    {"in", "value,seq", 2, CompareTest<Comparison::kIn>},
    {"integer", "value", 1, KindTest<Kind::kInteger>},
    {"iterable", "value", 1, ValueTest<IsIterable>},
    {"le", "a,b", 2, CompareTest<Comparison::kLessOrEqual>},
    {"lessthan", "a,b", 2, CompareTest<Comparison::kLess>},
    {"lower", "value", 1, CaseTest<false>},
    {"lt", "a,b", 2, CompareTest<Comparison::kLess>},
    {"mapping", "value", 1, ValueTest<IsMapping>},
    {"ne", "a,b", 2, CompareTest<Comparison::kNotEqual>},
    {"none", "value", 1, KindTest<Kind::kNone>},
    {"number", "value", 1, ValueTest<IsNumber>},
    {"odd", "value", 1, ParityTest<true>},
    {"sameas", "value,other", 2, SameAsTest},
    {"sequence", "value", 1, ValueTest<IsSequenceLike>},
    {"string", "value", 1, KindTest<Kind::kString>},
    {"test", "value", 1, NameTest<FindTest>},
    {"true", "value", 1, ValueTest<IsTrueItself>},
    {"undefined", "value", 1, KindTest<Kind::kUndefined>},
    {"upper", "value", 1, CaseTest<true>},
};

}  // namespace

const Native* FindTest(absl::string_view name) {
  static const auto* const kTable = [] {
    auto* table = new absl::flat_hash_map<absl::string_view, const Native*>();
    for (const Native& native : kTests) {
      table->emplace(native.name, &native);
    }
    return table;
  }();
  const auto found = kTable->find(name);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace millrace::model::jinja
