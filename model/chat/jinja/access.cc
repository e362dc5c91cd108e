#include "model/chat/jinja/access.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/callables.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/number.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

Value NoAttribute(Runtime& runtime, const Value& value,
                  absl::string_view name) {
  return runtime.heap().MakeUndefined(
      absl::StrCat("'", TypeName(value), value.Is(Kind::kNone) ? "" : " object",
                   "' has no attribute '", Printable(name), "'"));
}

Value Unsafe(Runtime& runtime, const Value& value, absl::string_view name) {
  return runtime.heap().MakeUndefined(
      absl::StrCat("access to attribute '", Printable(name), "' of '",
                   TypeName(value), "' object is unsafe."));
}

// Methods that change a value which came in, or could.
bool IsUnsafe(const Value& value, absl::string_view name) {
  if (absl::StartsWith(name, "__") && absl::EndsWith(name, "__")) {
    return true;
  }
  static constexpr absl::string_view kDict[] = {"clear", "pop", "popitem",
                                                "setdefault", "update"};
  static constexpr absl::string_view kList[] = {"append",  "clear", "extend",
                                                "insert",  "pop",   "remove",
                                                "reverse", "sort"};
  if (value.Is(Kind::kDict)) {
    return std::find(std::begin(kDict), std::end(kDict), name) !=
           std::end(kDict);
  }
  return value.Is(Kind::kList) && value.sequence()->untrusted &&
         std::find(std::begin(kList), std::end(kList), name) != std::end(kList);
}

std::optional<Value> LoopAttribute(Runtime& runtime, LoopObject& loop,
                                   absl::string_view name) {
  const auto length = static_cast<int64_t>(loop.items.size());
  const auto index = static_cast<int64_t>(loop.index);
  const std::pair<absl::string_view, int64_t> numbers[] = {
      {"index", index + 1},         {"index0", index},
      {"revindex", length - index}, {"revindex0", length - index - 1},
      {"length", length},           {"depth", loop.depth0 + 1},
      {"depth0", loop.depth0}};
  for (const auto& [known, number] : numbers) {
    if (known == name) {
      return Value::Of(number);
    }
  }
  if (name == "first") {
    return Value::Bool(index == 0);
  }
  if (name == "last") {
    return Value::Bool(index + 1 == length);
  }
  if (name == "previtem") {
    return index > 0
               ? loop.items[loop.index - 1]
               : runtime.heap().MakeUndefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < length
               ? loop.items[loop.index + 1]
               : runtime.heap().MakeUndefined("there is no next item");
  }
  return std::nullopt;
}

// Attributes that are no methods.
std::optional<Value> PlainAttribute(Runtime& runtime, const Value& value,
                                    absl::string_view name) {
  switch (value.kind()) {
    case Kind::kLoop:
      return LoopAttribute(runtime, *value.As<LoopObject>(), name);
    case Kind::kNamespace:
      if (const Value* found = value.dict()->Find(name)) {
        return *found;
      }
      return std::nullopt;
    case Kind::kCycler: {
      const auto& cycler = *value.As<CyclerObject>();
      if (name == "current") {
        return cycler.items[cycler.position];
      }
      return std::nullopt;
    }
    case Kind::kTuple:
      if (value.sequence()->is_group && name == "grouper") {
        return value.sequence()->items[0];
      }
      if (value.sequence()->is_group && name == "list") {
        return value.sequence()->items[1];
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

absl::StatusOr<std::optional<Value>> Attribute(Runtime& runtime,
                                               const Value& value,
                                               absl::string_view name) {
  if (IsUnsafe(value, name)) {
    return Unsafe(runtime, value, name);
  }
  if (std::optional<Value> plain = PlainAttribute(runtime, value, name)) {
    return plain;
  }
  const Native* method = FindMethod(value, name);
  if (method == nullptr) {
    return std::nullopt;
  }
  MILLRACE_ASSIGN_OR_RETURN(FunctionObject * bound,
                            runtime.heap().New<FunctionObject>());
  bound->native = method;
  bound->receiver = value;
  return Value::Of(Kind::kFunction, bound);
}

// The item of a sequence, a string or a dictionary; nullopt when none.
absl::StatusOr<std::optional<Value>> Item(Runtime& runtime, const Value& value,
                                          const Value& key) {
  if (value.Is(Kind::kDict)) {
    const Value* found = IsHashable(key) ? value.dict()->Find(key) : nullptr;
    return found == nullptr ? std::nullopt : std::optional<Value>(*found);
  }
  if (!key.IsIntegral()) {
    return std::nullopt;
  }
  Integer index = key.integer();
  int64_t length = 0;
  switch (value.kind()) {
    case Kind::kString:
      MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(value.text().size()));
      length = CountCodePoints(value.bytes());
      break;
    case Kind::kList:
    case Kind::kTuple:
      length = static_cast<int64_t>(value.sequence()->items.size());
      break;
    case Kind::kRange:
      length = value.As<RangeObject>()->count;
      break;
    default:
      return std::nullopt;
  }
  index += index < 0 ? length : 0;
  if (index < 0 || index >= length) {
    return std::nullopt;
  }
  const auto at = static_cast<int64_t>(index);
  if (value.Is(Kind::kRange)) {
    return RangeItem(*value.As<RangeObject>(), at);
  }
  if (!value.Is(Kind::kString)) {
    return value.sequence()->items[static_cast<size_t>(at)];
  }
  const int64_t begin = OffsetOf(value.bytes(), at);
  MILLRACE_ASSIGN_OR_RETURN(Value one,
                            runtime.heap().MakeString(value.text().Sub(
                                begin, NextPosition(value.bytes(), begin))));
  return one;
}

}  // namespace

const Native* FindMethod(const Value& value, absl::string_view name) {
  if (IsUnsafe(value, name)) {
    return nullptr;
  }
  switch (value.kind()) {
    case Kind::kString:
      return FindStringMethod(name);
    case Kind::kDict:
      return FindDictMethod(name);
    case Kind::kList:
      return FindListMethod(name);
    case Kind::kTuple:
    case Kind::kRange:
      return FindTupleMethod(name);
    case Kind::kFloat:
      return FindFloatMethod(name);
    case Kind::kLoop:
      return FindLoopMethod(name);
    case Kind::kCycler:
      return FindCyclerMethod(name);
    default:
      return nullptr;
  }
}

absl::StatusOr<Value> GetAttribute(Runtime& runtime, const Value& value,
                                   absl::string_view name) {
  if (value.Is(Kind::kUndefined)) {
    return FailUndefined(value);
  }
  MILLRACE_ASSIGN_OR_RETURN(std::optional<Value> attribute,
                            Attribute(runtime, value, name));
  if (attribute.has_value()) {
    return *std::move(attribute);
  }
  if (value.Is(Kind::kDict)) {
    if (const Value* found = value.dict()->Find(name)) {
      return *found;
    }
  }
  return NoAttribute(runtime, value, name);
}

absl::StatusOr<Value> GetOnlyAttribute(Runtime& runtime, const Value& value,
                                       absl::string_view name) {
  if (value.Is(Kind::kUndefined)) {
    return FailUndefined(value);
  }
  MILLRACE_ASSIGN_OR_RETURN(std::optional<Value> attribute,
                            Attribute(runtime, value, name));
  return attribute.has_value() ? *std::move(attribute)
                               : NoAttribute(runtime, value, name);
}

absl::StatusOr<Value> GetItem(Runtime& runtime, const Value& value,
                              const Value& key) {
  if (value.Is(Kind::kUndefined)) {
    return FailUndefined(value);
  }
  MILLRACE_ASSIGN_OR_RETURN(std::optional<Value> item,
                            Item(runtime, value, key));
  if (item.has_value()) {
    return *std::move(item);
  }
  if (key.Is(Kind::kString)) {
    MILLRACE_ASSIGN_OR_RETURN(std::optional<Value> attribute,
                              Attribute(runtime, value, key.bytes()));
    return attribute.has_value() ? *std::move(attribute)
                                 : NoAttribute(runtime, value, key.bytes());
  }
  return runtime.heap().MakeUndefined(
      absl::StrCat("'", TypeName(value), " object' has no element ",
                   key.IsIntegral() ? IntegerText(key.integer())
                                    : std::string(TypeName(key))));
}

absl::StatusOr<Value> GetPath(Runtime& runtime, const Value& value,
                              const Value& path, const Value* otherwise) {
  if (path.Is(Kind::kMissing) || path.Is(Kind::kNone)) {
    return value;
  }
  if (!path.Is(Kind::kString)) {
    MILLRACE_ASSIGN_OR_RETURN(Value item, GetItem(runtime, value, path));
    return otherwise != nullptr && item.Is(Kind::kUndefined) ? *otherwise
                                                             : item;
  }
  Value current = value;
  const Text& text = path.text();
  for (int64_t begin = 0; begin <= text.size();) {
    const size_t dot = text.bytes().find('.', static_cast<size_t>(begin));
    const int64_t end = dot == absl::string_view::npos
                            ? text.size()
                            : static_cast<int64_t>(dot);
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
    MILLRACE_ASSIGN_OR_RETURN(Value key,
                              runtime.heap().MakeString(text.Sub(begin, end)));
    int64_t number = 0;
    if (!key.bytes().empty() && absl::ascii_isdigit(key.bytes()[0]) &&
        absl::SimpleAtoi(key.bytes(), &number)) {
      key = Value::Of(number);
    }
    MILLRACE_ASSIGN_OR_RETURN(current, GetItem(runtime, current, key));
    if (otherwise != nullptr && current.Is(Kind::kUndefined)) {
      current = *otherwise;
    }
    begin = end + 1;
  }
  return current;
}

}  // namespace millrace::model::jinja
