#pragma once

#include "absl/status/statusor.h"
#include "base/json.h"
#include "model/chat/jinja/runtime.h"

namespace millrace::model::jinja {

// A JSON value as templates see it. With `untrusted` all its texts, numbers and
// containers, keys too, are marked so.
absl::StatusOr<Value> InputValue(Runtime& runtime, const Json& json,
                                 bool untrusted);

}  // namespace millrace::model::jinja
