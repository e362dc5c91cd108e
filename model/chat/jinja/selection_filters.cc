#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/operators.h"

namespace millrace::model::jinja {
namespace {

// Takes the named argument out, kMissing when there is none.
Value TakeNamed(Arguments& arguments, absl::string_view name) {
  const auto found =
      std::find_if(arguments.named.begin(), arguments.named.end(),
                   [&](const auto& entry) { return entry.first == name; });
  if (found == arguments.named.end()) {
    return Value::Missing();
  }
  Value out = std::move(found->second);
  arguments.named.erase(found);
  return out;
}

// The function that the argument at `index` names.
absl::StatusOr<const Native*> NamedNative(
    const Arguments& arguments, size_t index, absl::string_view what,
    const Native* (*find)(absl::string_view)) {
  MILLRACE_ASSIGN_OR_RETURN(const Text* name,
                            TextArgument(arguments, index, what));
  const Native* found = find(name->bytes());
  if (found == nullptr) {
    return Fail(
        absl::StrCat("No ", what, " named '", Printable(name->bytes()), "'."));
  }
  return found;
}

absl::StatusOr<Value> CallOn(Runtime& runtime, const Native& native,
                             const Value& item, const Arguments& arguments,
                             size_t first) {
  const DepthGuard guard(runtime);
  MILLRACE_RETURN_IF_ERROR(guard.status());
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(2));
  Arguments call;
  call.positional.push_back(item);
  call.positional.insert(
      call.positional.end(),
      arguments.positional.begin() + static_cast<int64_t>(first),
      arguments.positional.end());
  call.named = arguments.named;
  return CallNative(runtime, native, call);
}

// None and all else that is false has no items here.
absl::StatusOr<std::vector<Value>> ItemsOrNone(Runtime& runtime,
                                               const Value& value) {
  return IsTrue(value) ? ItemsOf(runtime, value) : std::vector<Value>();
}

absl::StatusOr<Value> MapFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOrNone(runtime, arguments.positional[0]));
  std::vector<Value> out;
  out.reserve(items.size());
  if (arguments.positional.size() == 1) {
    const Value path = TakeNamed(arguments, "attribute");
    const Value otherwise = TakeNamed(arguments, "default");
    if (path.Is(Kind::kMissing) || !arguments.named.empty()) {
      return Fail("map requires a filter argument");
    }
    const bool has_default =
        !otherwise.Is(Kind::kMissing) && !otherwise.Is(Kind::kNone);
    for (const Value& item : items) {
      MILLRACE_ASSIGN_OR_RETURN(
          Value mapped,
          GetPath(runtime, item, path, has_default ? &otherwise : nullptr));
      out.push_back(std::move(mapped));
    }
    return runtime.heap().MakeIterator(std::move(out));
  }
  MILLRACE_ASSIGN_OR_RETURN(const Native* filter,
                            NamedNative(arguments, 1, "filter", FindFilter));
  for (const Value& item : items) {
    MILLRACE_ASSIGN_OR_RETURN(Value mapped,
                              CallOn(runtime, *filter, item, arguments, 2));
    out.push_back(std::move(mapped));
  }
  return runtime.heap().MakeIterator(std::move(out));
}

template <bool keep, bool by_attribute>
absl::StatusOr<Value> SelectFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOrNone(runtime, arguments.positional[0]));
  size_t first = 1;
  Value path = Value::Missing();
  if (by_attribute) {
    if (arguments.positional.size() < 2) {
      return Fail("Missing parameter for attribute name");
    }
    path = arguments.positional[1];
    first = 2;
  }
  const Native* test = nullptr;
  if (arguments.positional.size() > first) {
    MILLRACE_ASSIGN_OR_RETURN(test,
                              NamedNative(arguments, first, "test", FindTest));
  }
  std::vector<Value> out;
  for (const Value& item : items) {
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
    MILLRACE_ASSIGN_OR_RETURN(Value tested,
                              GetPath(runtime, item, path, nullptr));
    if (test != nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(
          tested, CallOn(runtime, *test, tested, arguments, first + 1));
    }
    if (IsTrue(tested) == keep) {
      out.push_back(item);
    }
  }
  return runtime.heap().MakeIterator(std::move(out));
}

constexpr Native kFilters[] = {
    {"map", "*", 1, MapFilter},
    {"reject", "*", 1, SelectFilter<false, false>},
    {"rejectattr", "*", 1, SelectFilter<false, true>},
    {"select", "*", 1, SelectFilter<true, false>},
    {"selectattr", "*", 1, SelectFilter<true, true>},
};

}  // namespace

absl::Span<const Native> SelectionFilters() { return kFilters; }

}  // namespace millrace::model::jinja
