#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

// Where a slice begins and how often it steps, as Python counts it.
struct SliceBounds {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  int64_t count = 0;
};

absl::StatusOr<SliceBounds> BoundsOf(int64_t length, const Value& start,
                                     const Value& stop, const Value& step) {
  const Arguments parts{.positional = {start, stop, step}, .named = {}};
  SliceBounds out;
  MILLRACE_ASSIGN_OR_RETURN(out.step,
                            IntegerArgument(parts, 2, "a slice's step", 1));
  if (out.step == 0) {
    return Fail("a slice's step cannot be zero");
  }
  const bool back = out.step < 0;
  const int64_t low = back ? -1 : 0;
  const int64_t high = back ? length - 1 : length;
  const auto clamp = [&](int64_t index) {
    return std::clamp(index < 0 ? index + length : index, low,
                      std::max(low, high));
  };
  MILLRACE_ASSIGN_OR_RETURN(int64_t first,
                            IntegerArgument(parts, 0, "a slice's start", 0));
  first = IsGiven(parts, 0) ? clamp(first) : (back ? high : low);
  MILLRACE_ASSIGN_OR_RETURN(int64_t last,
                            IntegerArgument(parts, 1, "a slice's end", 0));
  last = IsGiven(parts, 1) ? clamp(last) : (back ? low : high);
  out.start = first;
  out.stop = last;
  const int64_t distance = back ? first - last : last - first;
  const int64_t stride = back ? -out.step : out.step;
  out.count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  return out;
}

absl::StatusOr<Value> SliceText(Runtime& runtime, const Text& text,
                                const SliceBounds& bounds) {
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(text.size()));
  const int64_t begin =
      OffsetOf(text.bytes(), std::max<int64_t>(bounds.start, 0));
  if (bounds.step == 1) {
    const int64_t size =
        OffsetOf(text.bytes().substr(static_cast<size_t>(begin)), bounds.count);
    return runtime.heap().MakeString(text.Sub(begin, begin + size));
  }
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(text.size() / 32));
  Text out;
  int64_t at = begin;
  for (int64_t i = 0; i < bounds.count; ++i) {
    out.Append(text, at, NextPosition(text.bytes(), at));
    for (int64_t j = std::abs(bounds.step); j > 0 && i + 1 < bounds.count;
         --j) {
      at = bounds.step > 0 ? NextPosition(text.bytes(), at)
                           : PreviousPosition(text.bytes(), at);
    }
  }
  return runtime.heap().MakeString(std::move(out));
}

absl::StatusOr<Value> SliceRange(Runtime& runtime, const RangeObject& range,
                                 const SliceBounds& bounds) {
  MILLRACE_ASSIGN_OR_RETURN(RangeObject * out,
                            runtime.heap().New<RangeObject>());
  out->start = range.start + bounds.start * range.step;
  out->stop = range.start + bounds.stop * range.step;
  out->step = range.step * bounds.step;
  out->count = bounds.count;
  return Value::Of(Kind::kRange, out);
}

}  // namespace

absl::StatusOr<Value> GetSlice(Runtime& runtime, const Value& value,
                               const Value& start, const Value& stop,
                               const Value& step) {
  if (value.Is(Kind::kUndefined)) {
    return FailUndefined(value);
  }
  const bool sliceable = value.Is(Kind::kString) || value.Is(Kind::kList) ||
                         value.Is(Kind::kTuple) || value.Is(Kind::kRange);
  if (!sliceable) {
    return Fail(
        absl::StrCat("'", TypeName(value), "' object is not subscriptable"));
  }
  MILLRACE_ASSIGN_OR_RETURN(const int64_t length, LengthOf(runtime, value));
  MILLRACE_ASSIGN_OR_RETURN(const SliceBounds bounds,
                            BoundsOf(length, start, stop, step));
  if (value.Is(Kind::kString)) {
    return SliceText(runtime, value.text(), bounds);
  }
  if (value.Is(Kind::kRange)) {
    return SliceRange(runtime, *value.As<RangeObject>(), bounds);
  }
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(bounds.count / 8));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(bounds.count));
  for (int64_t i = 0; i < bounds.count; ++i) {
    items.push_back(
        value.sequence()
            ->items[static_cast<size_t>(bounds.start + i * bounds.step)]);
  }
  return runtime.heap().MakeSequence(value.kind(), std::move(items));
}

}  // namespace millrace::model::jinja
