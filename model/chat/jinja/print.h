#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/chat/jinja/runtime.h"
#include "model/chat/jinja/value.h"

namespace millrace::model::jinja {

// str(value): how `{{ value }}` shows it. Undefined shows nothing.
absl::Status AppendPrinted(Runtime& runtime, const Value& value,
                           TextWriter& writer);
absl::StatusOr<Text> TextOf(Runtime& runtime, const Value& value);

// repr(value): strings in quotes, as inside lists.
absl::Status AppendRepr(Runtime& runtime, const Value& value,
                        TextWriter& writer);

// How json.dumps writes a value.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool indented = false;
  Text indent;  // of one level
  Text item_separator{", ", false};
  Text key_separator{": ", false};
};

// Fails for what JSON has no form for (undefined, namespaces, functions).
absl::Status AppendJson(Runtime& runtime, const Value& value,
                        const JsonStyle& style, TextWriter& writer);

}  // namespace millrace::model::jinja
