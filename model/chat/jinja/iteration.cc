#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/callables.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

absl::StatusOr<std::vector<Value>> Characters(Runtime& runtime,
                                              const Text& text) {
  const int64_t count = CountCodePoints(text.bytes());
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(count));
  MILLRACE_RETURN_IF_ERROR(runtime.heap().Ensure(
      count * static_cast<int64_t>(sizeof(Value) + sizeof(StringObject))));
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(count));
  for (int64_t at = 0; at < text.size();) {
    const int64_t next = NextPosition(text.bytes(), at);
    MILLRACE_ASSIGN_OR_RETURN(Value one,
                              runtime.heap().MakeString(text.Sub(at, next)));
    out.push_back(std::move(one));
    at = next;
  }
  return out;
}

absl::StatusOr<std::vector<Value>> ViewItems(Runtime& runtime,
                                             const ViewObject& view) {
  std::vector<Value> out;
  out.reserve(view.dict->entries.size());
  for (const auto& [key, value] : view.dict->entries) {
    if (view.part == ViewObject::Part::kItems) {
      MILLRACE_ASSIGN_OR_RETURN(Value pair,
                                runtime.heap().MakeTuple({key, value}));
      out.push_back(std::move(pair));
    } else {
      out.push_back(view.part == ViewObject::Part::kKeys ? key : value);
    }
  }
  return out;
}

}  // namespace

Value RangeItem(const RangeObject& range, int64_t index) {
  return Value::Of(Integer{range.start} + Integer{range.step} * index);
}

absl::StatusOr<std::vector<Value>> ItemsOf(Runtime& runtime,
                                           const Value& value) {
  std::vector<Value> out;
  switch (value.kind()) {
    case Kind::kUndefined:
      return out;
    case Kind::kString:
      return Characters(runtime, value.text());
    case Kind::kList:
    case Kind::kTuple: {
      const std::vector<Value>& items = value.sequence()->items;
      MILLRACE_RETURN_IF_ERROR(
          runtime.Spend(static_cast<int64_t>(items.size()) / 8));
      return items;
    }
    case Kind::kDict:
      for (const auto& [key, unused] : value.dict()->entries) {
        out.push_back(key);
      }
      return out;
    case Kind::kView:
      return ViewItems(runtime, *value.As<ViewObject>());
    case Kind::kIterator: {
      auto& iterator = *value.As<IteratorObject>();
      out.assign(iterator.items.begin() + static_cast<int64_t>(iterator.next),
                 iterator.items.end());
      iterator.next = iterator.items.size();
      return out;
    }
    case Kind::kRange: {
      const auto& range = *value.As<RangeObject>();
      MILLRACE_RETURN_IF_ERROR(runtime.Spend(range.count / 8));
      MILLRACE_RETURN_IF_ERROR(runtime.heap().Ensure(
          range.count * static_cast<int64_t>(sizeof(Value))));
      for (int64_t i = 0; i < range.count; ++i) {
        out.push_back(RangeItem(range, i));
      }
      return out;
    }
    case Kind::kLoop:
      return Fail("'loop' cannot be iterated over");
    default:
      return Fail(
          absl::StrCat("'", TypeName(value), "' object is not iterable"));
  }
}

absl::StatusOr<int64_t> LengthOf(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(value.text().size()));
      return CountCodePoints(value.bytes());
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<int64_t>(value.sequence()->items.size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict()->entries.size());
    case Kind::kView:
      return static_cast<int64_t>(value.As<ViewObject>()->dict->entries.size());
    case Kind::kRange:
      return value.As<RangeObject>()->count;
    case Kind::kLoop:
      return static_cast<int64_t>(value.As<LoopObject>()->items.size());
    default:
      return Fail(
          absl::StrCat("object of type '", TypeName(value), "' has no length"));
  }
}

}  // namespace millrace::model::jinja
