#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/jinja/runtime.h"
#include "model/chat/jinja/value.h"

namespace millrace::model::jinja {

// What iterating gives; an iterator is used up by it. The elements of a string
// are its characters, those of a dictionary its keys, undefined has none.
absl::StatusOr<std::vector<Value>> ItemsOf(Runtime& runtime,
                                           const Value& value);
// len(): code points of a string.
absl::StatusOr<int64_t> LengthOf(Runtime& runtime, const Value& value);

// `value.name`: attributes and methods first, then items. Undefined when there
// is none; of an undefined value an error.
absl::StatusOr<Value> GetAttribute(Runtime& runtime, const Value& value,
                                   absl::string_view name);
// `value[key]`: items first, then attributes.
absl::StatusOr<Value> GetItem(Runtime& runtime, const Value& value,
                              const Value& key);
// `attr` filter: attributes and methods, never items.
absl::StatusOr<Value> GetOnlyAttribute(Runtime& runtime, const Value& value,
                                       absl::string_view name);
// Null when the value has no such method.
const Native* FindMethod(const Value& value, absl::string_view name);

// `value[start:stop:step]`; parts that are None or missing count as left out.
absl::StatusOr<Value> GetSlice(Runtime& runtime, const Value& value,
                               const Value& start, const Value& stop,
                               const Value& step);

// The value at `index` of a range.
Value RangeItem(const RangeObject& range, int64_t index);

// A path as `map(attribute=...)` takes it: "a.b.0"; None is the value itself.
// `otherwise` (may be null) replaces what is undefined.
absl::StatusOr<Value> GetPath(Runtime& runtime, const Value& value,
                              const Value& path, const Value* otherwise);

}  // namespace millrace::model::jinja
