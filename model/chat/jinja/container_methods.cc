#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/callables.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/operators.h"

namespace millrace::model::jinja {
namespace {

const Value& Self(const Arguments& arguments) {
  return arguments.positional[0];
}

const Native* Find(absl::Span<const Native> table, absl::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(),
                   [&](const Native& native) { return name == native.name; });
  return found == table.end() ? nullptr : &*found;
}

absl::StatusOr<Value> DictGet(Runtime& /*runtime*/, Arguments& arguments) {
  const Value& key = arguments.positional[1];
  if (!IsHashable(key)) {
    return Fail(absl::StrCat("unhashable type: '", TypeName(key), "'"));
  }
  if (const Value* found = Self(arguments).dict()->Find(key)) {
    return *found;
  }
  const Value& otherwise = arguments.positional[2];
  return otherwise.Is(Kind::kMissing) ? Value::None() : otherwise;
}

template <ViewObject::Part part>
absl::StatusOr<Value> DictView(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(ViewObject * view,
                            runtime.heap().New<ViewObject>());
  view->dict = Self(arguments).dict();
  view->part = part;
  return Value::Of(Kind::kView, view);
}

absl::StatusOr<Value> DictCopy(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(DictObject * copy,
                            runtime.heap().New<DictObject>());
  for (const auto& [key, value] : Self(arguments).dict()->entries) {
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
    MILLRACE_RETURN_IF_ERROR(runtime.heap().Put(*copy, key, value));
  }
  return Value::Of(Kind::kDict, copy);
}

absl::StatusOr<Value> SequenceCount(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, Self(arguments)));
  int64_t count = 0;
  for (const Value& item : items) {
    MILLRACE_ASSIGN_OR_RETURN(const bool equal,
                              Equal(runtime, item, arguments.positional[1]));
    count += equal ? 1 : 0;
  }
  return Value::Of(count);
}

absl::StatusOr<Value> SequenceIndex(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, Self(arguments)));
  for (size_t i = 0; i < items.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(
        const bool equal, Equal(runtime, items[i], arguments.positional[1]));
    if (equal) {
      return Value::Of(static_cast<int64_t>(i));
    }
  }
  return Fail("the value is not in the list");
}

absl::StatusOr<Value> ListCopy(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<Value> items,
                            ItemsOf(runtime, Self(arguments)));
  return runtime.heap().MakeList(std::move(items));
}

// Methods that change a list are reached for lists alone that the template
// made itself; see IsUnsafe in access.cc.
absl::Status Insert(Runtime& runtime, Arguments& arguments, int64_t index,
                    const Value& item) {
  std::vector<Value>& items = Self(arguments).sequence()->items;
  const auto size = static_cast<int64_t>(items.size());
  MILLRACE_RETURN_IF_ERROR(
      runtime.heap().Charge(static_cast<int64_t>(2 * sizeof(Value))));
  index = std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(1 + (size - index) / 32));
  items.insert(items.begin() + index, item);
  return absl::OkStatus();
}

absl::StatusOr<Value> ListAppend(Runtime& runtime, Arguments& arguments) {
  const auto size =
      static_cast<int64_t>(Self(arguments).sequence()->items.size());
  MILLRACE_RETURN_IF_ERROR(
      Insert(runtime, arguments, size, arguments.positional[1]));
  return Value::None();
}

absl::StatusOr<Value> ListInsert(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t index,
                            IntegerArgument(arguments, 1, "index", 0));
  MILLRACE_RETURN_IF_ERROR(
      Insert(runtime, arguments, index, arguments.positional[2]));
  return Value::None();
}

absl::StatusOr<Value> ListExtend(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> more,
                            ItemsOf(runtime, arguments.positional[1]));
  for (const Value& item : more) {
    const auto size =
        static_cast<int64_t>(Self(arguments).sequence()->items.size());
    MILLRACE_RETURN_IF_ERROR(Insert(runtime, arguments, size, item));
  }
  return Value::None();
}

absl::StatusOr<Value> ListPop(Runtime& runtime, Arguments& arguments) {
  std::vector<Value>& items = Self(arguments).sequence()->items;
  const auto size = static_cast<int64_t>(items.size());
  MILLRACE_ASSIGN_OR_RETURN(int64_t index,
                            IntegerArgument(arguments, 1, "index", -1));
  index += index < 0 ? size : 0;
  if (index < 0 || index >= size) {
    return Fail("pop index out of range");
  }
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(1 + (size - index) / 32));
  Value out = items[static_cast<size_t>(index)];
  items.erase(items.begin() + index);
  return out;
}

absl::StatusOr<Value> ListClear(Runtime& /*runtime*/, Arguments& arguments) {
  Self(arguments).sequence()->items.clear();
  return Value::None();
}

absl::StatusOr<Value> ListReverse(Runtime& runtime, Arguments& arguments) {
  std::vector<Value>& items = Self(arguments).sequence()->items;
  MILLRACE_RETURN_IF_ERROR(
      runtime.Spend(static_cast<int64_t>(items.size()) / 8));
  std::reverse(items.begin(), items.end());
  return Value::None();
}

absl::StatusOr<Value> FloatIsInteger(Runtime& /*runtime*/,
                                     Arguments& arguments) {
  const double number = Self(arguments).number();
  return Value::Bool(std::isfinite(number) && std::trunc(number) == number);
}

absl::StatusOr<Value> LoopCycle(Runtime& /*runtime*/, Arguments& arguments) {
  const size_t choices = arguments.positional.size() - 1;
  if (choices == 0) {
    return Fail("no items for cycling given");
  }
  const size_t index = Self(arguments).As<LoopObject>()->index;
  return arguments.positional[1 + index % choices];
}

absl::StatusOr<Value> LoopChanged(Runtime& runtime, Arguments& arguments) {
  auto& loop = *Self(arguments).As<LoopObject>();
  std::vector<Value> checked(arguments.positional.begin() + 1,
                             arguments.positional.end());
  MILLRACE_ASSIGN_OR_RETURN(Value now,
                            runtime.heap().MakeTuple(std::move(checked)));
  bool same = false;
  if (!loop.last_checked.Is(Kind::kMissing)) {
    MILLRACE_ASSIGN_OR_RETURN(same, Equal(runtime, loop.last_checked, now));
  }
  loop.last_checked = std::move(now);
  return Value::Bool(!same);
}

absl::StatusOr<Value> CyclerNext(Runtime& /*runtime*/, Arguments& arguments) {
  auto& cycler = *Self(arguments).As<CyclerObject>();
  Value out = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return out;
}

absl::StatusOr<Value> CyclerReset(Runtime& /*runtime*/, Arguments& arguments) {
  Self(arguments).As<CyclerObject>()->position = 0;
  return Value::None();
}

constexpr Native kDict[] = {
    {"get", "d,key,default", 2, DictGet},
    {"items", "d", 1, DictView<ViewObject::Part::kItems>},
    {"keys", "d", 1, DictView<ViewObject::Part::kKeys>},
    {"values", "d", 1, DictView<ViewObject::Part::kValues>},
    {"copy", "d", 1, DictCopy},
};
constexpr Native kList[] = {
    {"append", "l,item", 2, ListAppend},
    {"clear", "l", 1, ListClear},
    {"copy", "l", 1, ListCopy},
    {"count", "l,item", 2, SequenceCount},
    {"extend", "l,iterable", 2, ListExtend},
    {"index", "l,item", 2, SequenceIndex},
    {"insert", "l,index,item", 3, ListInsert},
    {"pop", "l,index", 1, ListPop},
    {"reverse", "l", 1, ListReverse},
};
constexpr Native kTuple[] = {
    {"count", "t,item", 2, SequenceCount},
    {"index", "t,item", 2, SequenceIndex},
};
constexpr Native kFloat[] = {{"is_integer", "f", 1, FloatIsInteger}};
constexpr Native kLoop[] = {
    {"cycle", "*", 1, LoopCycle},
    {"changed", "*", 1, LoopChanged},
};
constexpr Native kCycler[] = {
    {"next", "c", 1, CyclerNext},
    {"reset", "c", 1, CyclerReset},
};

}  // namespace

const Native* FindDictMethod(absl::string_view name) {
  return Find(kDict, name);
}
const Native* FindListMethod(absl::string_view name) {
  return Find(kList, name);
}
const Native* FindTupleMethod(absl::string_view name) {
  return Find(kTuple, name);
}
const Native* FindFloatMethod(absl::string_view name) {
  return Find(kFloat, name);
}
const Native* FindLoopMethod(absl::string_view name) {
  return Find(kLoop, name);
}
const Native* FindCyclerMethod(absl::string_view name) {
  return Find(kCycler, name);
}

}  // namespace millrace::model::jinja
