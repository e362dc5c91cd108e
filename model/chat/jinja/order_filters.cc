#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

// A text in lower case unless `case_sensitive`, anything else as it is.
absl::StatusOr<Value> Folded(Runtime& runtime, const Value& value,
                             bool case_sensitive) {
  if (case_sensitive || !value.Is(Kind::kString)) {
    return value;
  }
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(value.text().size()));
  return runtime.heap().MakeString(MapCase(value.text(), CaseMapping::kLower));
}

// An item with what it is ordered by.
struct Keyed {
  Value key;
  Value item;
};

absl::Status SortByKey(Runtime& runtime, std::vector<Keyed>& entries,
                       bool reverse) {
  absl::Status failed;
  const auto less = [&](const Keyed& a, const Keyed& b) {
    if (!failed.ok()) {
      return false;
    }
    const absl::StatusOr<bool> result =
        reverse ? Less(runtime, b.key, a.key) : Less(runtime, a.key, b.key);
    failed = result.status();
    return result.ok() && *result;
  };
  std::stable_sort(entries.begin(), entries.end(), less);
  return failed;
}

std::vector<Value> ItemsIn(std::vector<Keyed> entries) {
  std::vector<Value> out;
  out.reserve(entries.size());
  for (Keyed& entry : entries) {
    out.push_back(std::move(entry.item));
  }
  return out;
}

// The paths of "a,b.c", or the one that is no text.
absl::StatusOr<std::vector<Value>> PathsOf(Runtime& runtime,
                                           const Value& attribute) {
  if (!attribute.Is(Kind::kString)) {
    return std::vector<Value>{attribute};
  }
  std::vector<Value> paths;
  const Text& text = attribute.text();
  for (int64_t begin = 0; begin <= text.size();) {
    const size_t comma = text.bytes().find(',', static_cast<size_t>(begin));
    const int64_t end = comma == absl::string_view::npos
                            ? text.size()
                            : static_cast<int64_t>(comma);
    MILLRACE_ASSIGN_OR_RETURN(Value path,
                              runtime.heap().MakeString(text.Sub(begin, end)));
    paths.push_back(std::move(path));
    begin = end + 1;
  }
  return paths;
}

absl::StatusOr<Value> SortFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[0]));
  const bool case_sensitive = FlagArgument(arguments, 2, false);
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> paths,
                            PathsOf(runtime, arguments.positional[3]));
  std::vector<Keyed> entries;
  for (Value& item : items) {
    std::vector<Value> keys;
    for (const Value& path : paths) {
      MILLRACE_ASSIGN_OR_RETURN(const Value key,
                                GetPath(runtime, item, path, nullptr));
      MILLRACE_ASSIGN_OR_RETURN(Value folded,
                                Folded(runtime, key, case_sensitive));
      keys.push_back(std::move(folded));
    }
    MILLRACE_ASSIGN_OR_RETURN(Value key,
                              runtime.heap().MakeTuple(std::move(keys)));
    entries.push_back({std::move(key), std::move(item)});
  }
  MILLRACE_RETURN_IF_ERROR(
      SortByKey(runtime, entries, FlagArgument(arguments, 1, false)));
  return runtime.heap().MakeList(ItemsIn(std::move(entries)));
}

absl::StatusOr<Value> DictSortFilter(Runtime& runtime, Arguments& arguments) {
  if (!arguments.positional[0].Is(Kind::kDict)) {
    return arguments.positional[0].Is(Kind::kUndefined)
               ? FailUndefined(arguments.positional[0])
               : Fail("dictsort needs a dictionary");
  }
  bool by_value = false;
  if (IsGiven(arguments, 2)) {
    MILLRACE_ASSIGN_OR_RETURN(const Text* by, TextArgument(arguments, 2, "by"));
    by_value = by->bytes() == "value";
    if (!by_value && by->bytes() != "key") {
      return Fail("You can only sort by either \"key\" or \"value\"");
    }
  }
  std::vector<Keyed> entries;
  for (const auto& [key, value] : arguments.positional[0].dict()->entries) {
    MILLRACE_ASSIGN_OR_RETURN(Value pair,
                              runtime.heap().MakeTuple({key, value}));
    MILLRACE_ASSIGN_OR_RETURN(Value order,
                              Folded(runtime, by_value ? value : key,
                                     FlagArgument(arguments, 1, false)));
    entries.push_back({std::move(order), std::move(pair)});
  }
  MILLRACE_RETURN_IF_ERROR(
      SortByKey(runtime, entries, FlagArgument(arguments, 3, false)));
  return runtime.heap().MakeList(ItemsIn(std::move(entries)));
}

template <bool largest>
absl::StatusOr<Value> ExtremeFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[0]));
  if (items.empty()) {
    return runtime.heap().MakeUndefined(
        "No aggregated item, sequence was empty.");
  }
  const bool case_sensitive = FlagArgument(arguments, 1, false);
  size_t best = 0;
  Value best_key;
  for (size_t i = 0; i < items.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(
        const Value key,
        GetPath(runtime, items[i], arguments.positional[2], nullptr));
    MILLRACE_ASSIGN_OR_RETURN(const Value folded,
                              Folded(runtime, key, case_sensitive));
    bool better = i == 0;
    if (i > 0) {
      MILLRACE_ASSIGN_OR_RETURN(better, largest
                                            ? Less(runtime, best_key, folded)
                                            : Less(runtime, folded, best_key));
    }
    if (better) {
      best = i;
      best_key = folded;
    }
  }
  return items[best];
}

absl::StatusOr<Value> UniqueFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[0]));
  const bool case_sensitive = FlagArgument(arguments, 1, false);
  absl::flat_hash_set<std::string> seen;
  std::vector<Value> out;
  for (Value& item : items) {
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
    MILLRACE_ASSIGN_OR_RETURN(
        const Value key,
        GetPath(runtime, item, arguments.positional[2], nullptr));
    MILLRACE_ASSIGN_OR_RETURN(const Value folded,
                              Folded(runtime, key, case_sensitive));
    if (!IsHashable(folded)) {
      return Fail(absl::StrCat("unhashable type: '", TypeName(folded), "'"));
    }
    std::string hashed = HashableKey(folded);
    MILLRACE_RETURN_IF_ERROR(
        runtime.heap().Charge(static_cast<int64_t>(hashed.size()) + 64));
    if (seen.insert(std::move(hashed)).second) {
      out.push_back(std::move(item));
    }
  }
  return runtime.heap().MakeIterator(std::move(out));
}

absl::StatusOr<Value> MakeGroup(Runtime& runtime, Value key,
                                std::vector<Value> items) {
  MILLRACE_ASSIGN_OR_RETURN(Value list,
                            runtime.heap().MakeList(std::move(items)));
  MILLRACE_ASSIGN_OR_RETURN(
      Value group, runtime.heap().MakeTuple({std::move(key), std::move(list)}));
  group.sequence()->is_group = true;
  return group;
}

absl::StatusOr<Value> GroupByFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[0]));
  const Value& path = arguments.positional[1];
  const Value* otherwise =
      IsGiven(arguments, 2) ? &arguments.positional[2] : nullptr;
  const bool case_sensitive = FlagArgument(arguments, 3, false);
  std::vector<Keyed> entries;
  for (Value& item : items) {
    MILLRACE_ASSIGN_OR_RETURN(const Value key,
                              GetPath(runtime, item, path, otherwise));
    MILLRACE_ASSIGN_OR_RETURN(Value folded,
                              Folded(runtime, key, case_sensitive));
    entries.push_back({std::move(folded), std::move(item)});
  }
  MILLRACE_RETURN_IF_ERROR(SortByKey(runtime, entries, false));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < entries.size();) {
    std::vector<Value> members;
    size_t end = begin;
    for (; end < entries.size(); ++end) {
      MILLRACE_ASSIGN_OR_RETURN(
          const bool same,
          Equal(runtime, entries[begin].key, entries[end].key));
      if (!same) {
        break;
      }
      members.push_back(entries[end].item);
    }
    MILLRACE_ASSIGN_OR_RETURN(Value shown,
                              GetPath(runtime, members[0], path, otherwise));
    MILLRACE_ASSIGN_OR_RETURN(
        Value group, MakeGroup(runtime, std::move(shown), std::move(members)));
    groups.push_back(std::move(group));
    begin = std::max(end, begin + 1);
  }
  return runtime.heap().MakeList(std::move(groups));
}

constexpr Native kFilters[] = {
    {"dictsort", "value,case_sensitive,by,reverse", 1, DictSortFilter},
    {"groupby", "value,attribute,default,case_sensitive", 2, GroupByFilter},
    {"max", "value,case_sensitive,attribute", 1, ExtremeFilter<true>},
    {"min", "value,case_sensitive,attribute", 1, ExtremeFilter<false>},
    {"sort", "value,reverse,case_sensitive,attribute", 1, SortFilter},
    {"unique", "value,case_sensitive,attribute", 1, UniqueFilter},
};

}  // namespace

absl::Span<const Native> OrderFilters() { return kFilters; }

}  // namespace millrace::model::jinja
