#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/print.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

absl::StatusOr<Value> LengthFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t length,
                            LengthOf(runtime, arguments.positional[0]));
  return Value::Of(length);
}

absl::StatusOr<Value> DefaultFilter(Runtime& runtime, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  if (!value.Is(Kind::kUndefined) &&
      (!FlagArgument(arguments, 2, false) || IsTrue(value))) {
    return value;
  }
  const Value& otherwise = arguments.positional[1];
  return otherwise.Is(Kind::kMissing) ? runtime.heap().MakeString("")
                                      : absl::StatusOr<Value>(otherwise);
}

absl::StatusOr<Value> AttrFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text* name,
                            TextArgument(arguments, 1, "attr's name"));
  return GetOnlyAttribute(runtime, arguments.positional[0], name->bytes());
}

absl::StatusOr<Value> FirstFilter(Runtime& runtime, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  if (value.Is(Kind::kIterator)) {
    auto& iterator = *value.As<IteratorObject>();
    if (iterator.next < iterator.items.size()) {
      return iterator.items[iterator.next++];
    }
  } else if (value.Is(Kind::kString) && !value.text().empty()) {
    return runtime.heap().MakeString(
        value.text().Sub(0, NextPosition(value.bytes(), 0)));
  } else {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                              ItemsOf(runtime, value));
    if (!items.empty()) {
      return items.front();
    }
  }
  return runtime.heap().MakeUndefined("No first item, sequence was empty.");
}

absl::StatusOr<Value> LastFilter(Runtime& runtime, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  if (value.Is(Kind::kIterator)) {
    return Fail("'generator' object is not reversible");
  }
  if (value.Is(Kind::kString) && !value.text().empty()) {
    const int64_t size = value.text().size();
    return runtime.heap().MakeString(
        value.text().Sub(PreviousPosition(value.bytes(), size), size));
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, value));
  return items.empty()
             ? runtime.heap().MakeUndefined("No last item, sequence was empty.")
             : items.back();
}

absl::StatusOr<Value> ListFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[0]));
  return runtime.heap().MakeList(std::move(items));
}

absl::StatusOr<Value> ItemsFilter(Runtime& runtime, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  if (value.Is(Kind::kUndefined)) {
    return runtime.heap().MakeIterator({});
  }
  if (!value.Is(Kind::kDict)) {
    return Fail("Can only get item pairs from a mapping.");
  }
  std::vector<Value> pairs;
  for (const auto& [key, item] : value.dict()->entries) {
    MILLRACE_ASSIGN_OR_RETURN(Value pair,
                              runtime.heap().MakeTuple({key, item}));
    pairs.push_back(std::move(pair));
  }
  return runtime.heap().MakeIterator(std::move(pairs));
}

absl::StatusOr<Value> ReverseFilter(Runtime& runtime, Arguments& arguments) {
  const Value& value = arguments.positional[0];
  if (value.Is(Kind::kString)) {
    return GetSlice(runtime, value, Value::None(), Value::None(),
                    Value::Of(-1));
  }
  MILLRACE_ASSIGN_OR_RETURN(std::vector<Value> items, ItemsOf(runtime, value));
  std::reverse(items.begin(), items.end());
  return value.Is(Kind::kIterator)
             ? runtime.heap().MakeList(std::move(items))
             : runtime.heap().MakeIterator(std::move(items));
}

absl::StatusOr<Value> JoinFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[0]));
  Text separator;
  if (!arguments.positional[1].Is(Kind::kMissing)) {
    MILLRACE_ASSIGN_OR_RETURN(separator,
                              TextOf(runtime, arguments.positional[1]));
  }
  TextWriter writer(runtime);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(separator.size()));
      writer.Append(separator);
    }
    MILLRACE_ASSIGN_OR_RETURN(
        const Value item,
        GetPath(runtime, items[i], arguments.positional[2], nullptr));
    MILLRACE_RETURN_IF_ERROR(AppendPrinted(runtime, item, writer));
  }
  return Finish(runtime, writer);
}

absl::StatusOr<Value> SumFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[0]));
  Value total = arguments.positional[2].Is(Kind::kMissing)
                    ? Value::Of(0)
                    : arguments.positional[2];
  for (const Value& item : items) {
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
    MILLRACE_ASSIGN_OR_RETURN(
        const Value part,
        GetPath(runtime, item, arguments.positional[1], nullptr));
    if (total.Is(Kind::kString)) {
      return Fail("sum() cannot sum strings");
    }
    MILLRACE_ASSIGN_OR_RETURN(
        total, Apply(runtime, BinaryOperator::kAdd, total, part));
  }
  return total;
}

absl::StatusOr<Value> BatchFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[0]));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t count,
                            IntegerArgument(arguments, 1, "linecount", 1));
  if (count <= 0 || count > 1 << 20) {
    return Fail("batch: the number of items is out of range");
  }
  std::vector<Value> batches;
  const auto total = static_cast<int64_t>(items.size());
  for (int64_t at = 0; at < total; at += count) {
    std::vector<Value> batch(items.begin() + at,
                             items.begin() + std::min(at + count, total));
    if (IsGiven(arguments, 2)) {
      batch.resize(static_cast<size_t>(count), arguments.positional[2]);
    }
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
    MILLRACE_ASSIGN_OR_RETURN(Value list,
                              runtime.heap().MakeList(std::move(batch)));
    batches.push_back(std::move(list));
  }
  return runtime.heap().MakeIterator(std::move(batches));
}

absl::StatusOr<Value> SliceFilter(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            ItemsOf(runtime, arguments.positional[0]));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t slices,
                            IntegerArgument(arguments, 1, "slices", 1));
  if (slices <= 0 || slices > 1 << 20) {
    return Fail("slice: the number of slices is out of range");
  }
  const auto total = static_cast<int64_t>(items.size());
  const int64_t extra = total % slices;
  std::vector<Value> out;
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t end = begin + total / slices + (i < extra ? 1 : 0);
    std::vector<Value> part(items.begin() + begin, items.begin() + end);
    if (IsGiven(arguments, 2) && i >= extra) {
      part.push_back(arguments.positional[2]);
    }
    begin = end;
    MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
    MILLRACE_ASSIGN_OR_RETURN(Value list,
                              runtime.heap().MakeList(std::move(part)));
    out.push_back(std::move(list));
  }
  return runtime.heap().MakeIterator(std::move(out));
}

constexpr Native kFilters[] = {
    {"attr", "obj,name", 2, AttrFilter},
    {"batch", "value,linecount,fill_with", 2, BatchFilter},
    {"count", "value", 1, LengthFilter},
    {"d", "value,default_value,boolean", 1, DefaultFilter},
    {"default", "value,default_value,boolean", 1, DefaultFilter},
    {"first", "seq", 1, FirstFilter},
    {"items", "value", 1, ItemsFilter},
    {"join", "value,d,attribute", 1, JoinFilter},
    {"last", "seq", 1, LastFilter},
    {"length", "value", 1, LengthFilter},
    {"list", "value", 1, ListFilter},
    {"reverse", "value", 1, ReverseFilter},
    {"slice", "value,slices,fill_with", 2, SliceFilter},
    {"sum", "iterable,attribute,start", 1, SumFilter},
};

}  // namespace

absl::Span<const Native> SequenceFilters() { return kFilters; }

}  // namespace millrace::model::jinja
