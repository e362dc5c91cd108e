#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/operators.h"

namespace millrace::model::jinja {
namespace {

bool IsSequence(const Value& value) {
  return value.Is(Kind::kList) || value.Is(Kind::kTuple);
}

absl::StatusOr<bool> EqualSequences(Runtime& runtime, const Value& left,
                                    const Value& right) {
  const std::vector<Value>& a = left.sequence()->items;
  const std::vector<Value>& b = right.sequence()->items;
  if (left.object() == right.object()) {
    return true;
  }
  if (a.size() != b.size()) {
    return false;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, a[i], b[i]));
    if (!equal) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<bool> EqualDicts(Runtime& runtime, DictObject& a,
                                DictObject& b) {
  if (&a == &b) {
    return true;
  }
  if (a.entries.size() != b.entries.size()) {
    return false;
  }
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.Find(key);
    if (other == nullptr) {
      return false;
    }
    MILLRACE_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, value, *other));
    if (!equal) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<bool> EqualViews(Runtime& runtime, const Value& left,
                                const Value& right) {
  const auto& a = *left.As<ViewObject>();
  const auto& b = *right.As<ViewObject>();
  if (a.part != b.part || a.part == ViewObject::Part::kValues) {
    return &a == &b;
  }
  if (a.part == ViewObject::Part::kItems) {
    return EqualDicts(runtime, *a.dict, *b.dict);
  }
  if (a.dict->entries.size() != b.dict->entries.size()) {
    return false;
  }
  for (const auto& [key, unused] : a.dict->entries) {
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
    if (b.dict->Find(key) == nullptr) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<bool> Contains(Runtime& runtime, const Value& container,
                              const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.Is(Kind::kString)) {
        return Fail(
            absl::StrCat("'in <string>' needs a string on its left, "
                         "not ",
                         TypeName(item)));
      }
      MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(container.text().size()));
      return absl::StrContains(container.bytes(), item.bytes());
    case Kind::kDict:
      if (!IsHashable(item)) {
        return Fail(absl::StrCat("unhashable type: '", TypeName(item), "'"));
      }
      return container.dict()->Find(item) != nullptr;
    default:
      break;
  }
  std::vector<Value> made;
  if (!IsSequence(container)) {
    MILLRACE_ASSIGN_OR_RETURN(made, ItemsOf(runtime, container));
  }
  for (const Value& candidate :
       IsSequence(container) ? container.sequence()->items : made) {
    MILLRACE_ASSIGN_OR_RETURN(const bool equal,
                              Equal(runtime, candidate, item));
    if (equal) {
      return true;
    }
  }
  return false;
}

bool NumbersEqual(const Value& left, const Value& right) {
  if (left.IsIntegral() && right.IsIntegral()) {
    return left.integer() == right.integer();
  }
  return left.number() == right.number();
}

absl::StatusOr<bool> LessOrEqual(Runtime& runtime, const Value& left,
                                 const Value& right) {
  MILLRACE_ASSIGN_OR_RETURN(const bool less, Less(runtime, left, right));
  return less ? absl::StatusOr<bool>(true) : Equal(runtime, left, right);
}

}  // namespace

bool IsTrue(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
    case Kind::kMissing:
      return false;
    case Kind::kBool:
    case Kind::kInteger:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.number() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.sequence()->items.empty();
    case Kind::kDict:
      return !value.dict()->entries.empty();
    case Kind::kView:
      return !value.As<ViewObject>()->dict->entries.empty();
    case Kind::kRange:
      return value.As<RangeObject>()->count != 0;
    case Kind::kNamespace:
    case Kind::kIterator:
    case Kind::kFunction:
    case Kind::kMacro:
    case Kind::kLoop:
    case Kind::kCycler:
    case Kind::kJoiner:
      return true;
  }
  return true;
}

absl::StatusOr<bool> Equal(Runtime& runtime, const Value& left,
                           const Value& right) {
  const DepthGuard guard(runtime);
  MILLRACE_RETURN_IF_ERROR(guard.status());
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
  if (left.IsNumber() && right.IsNumber()) {
    return NumbersEqual(left, right);
  }
  if (left.kind() != right.kind()) {
    return false;
  }
  switch (left.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(left.text().size()));
      return left.bytes() == right.bytes();
    case Kind::kList:
    case Kind::kTuple:
      return EqualSequences(runtime, left, right);
    case Kind::kDict:
      return EqualDicts(runtime, *left.dict(), *right.dict());
    case Kind::kRange: {
      const auto& a = *left.As<RangeObject>();
      const auto& b = *right.As<RangeObject>();
      return a.count == b.count &&
             (a.count == 0 ||
              (a.start == b.start && (a.count == 1 || a.step == b.step)));
    }
    case Kind::kView:
      return EqualViews(runtime, left, right);
    default:
      return left.object() == right.object();
  }
}

absl::StatusOr<bool> Less(Runtime& runtime, const Value& left,
                          const Value& right) {
  const DepthGuard guard(runtime);
  MILLRACE_RETURN_IF_ERROR(guard.status());
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
  if (left.IsIntegral() && right.IsIntegral()) {
    return left.integer() < right.integer();
  }
  if (left.IsNumber() && right.IsNumber()) {
    return left.number() < right.number();
  }
  if (left.Is(Kind::kString) && right.Is(Kind::kString)) {
    // The order of UTF-8 bytes is that of code points.
    MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(left.text().size()));
    return left.bytes() < right.bytes();
  }
  if (!IsSequence(left) || left.kind() != right.kind()) {
    for (const Value* value : {&left, &right}) {
      if (value->Is(Kind::kUndefined)) {
        return FailUndefined(*value);
      }
    }
    return Fail(absl::StrCat("'", TypeName(left), "' and '", TypeName(right),
                             "' have no order"));
  }
  const std::vector<Value>& a = left.sequence()->items;
  const std::vector<Value>& b = right.sequence()->items;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, a[i], b[i]));
    if (!equal) {
      return Less(runtime, a[i], b[i]);
    }
  }
  return a.size() < b.size();
}

absl::StatusOr<bool> Compare(Runtime& runtime, Comparison comparison,
                             const Value& left, const Value& right) {
  absl::StatusOr<bool> result = false;
  switch (comparison) {
    case Comparison::kEqual:
    case Comparison::kNotEqual:
      result = Equal(runtime, left, right);
      break;
    case Comparison::kLess:
      return Less(runtime, left, right);
    case Comparison::kGreater:
      return Less(runtime, right, left);
    case Comparison::kLessOrEqual:
      return LessOrEqual(runtime, left, right);
    case Comparison::kGreaterOrEqual:
      return LessOrEqual(runtime, right, left);
    case Comparison::kIn:
    case Comparison::kNotIn:
      result = Contains(runtime, right, left);
      break;
  }
  const bool negated =
      comparison == Comparison::kNotEqual || comparison == Comparison::kNotIn;
  if (result.ok() && negated) {
    result = !*result;
  }
  return result;
}

}  // namespace millrace::model::jinja
