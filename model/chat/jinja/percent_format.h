#pragma once

#include "absl/status/statusor.h"
#include "model/chat/jinja/runtime.h"
#include "model/chat/jinja/value.h"

namespace millrace::model::jinja {

// How a number or text is laid out: flags, width and precision of `%` and of
// format specifications.
struct FieldLayout {
  char32_t fill = ' ';
  char align = 0;  // < > ^ =, 0: what the type wants
  char sign = 0;   // + or blank, 0: only minus
  bool alternate = false;
  bool zero = false;
  char thousands = 0;  // , or _
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
  bool untrusted = false;  // stems from the input: what it adds does too
};

// Width and precision beyond this are refused.
inline constexpr int64_t kFieldWidthMax = 1 << 16;

// text % arguments, a tuple or one value or a dictionary.
absl::StatusOr<Value> PercentFormat(Runtime& runtime, const Text& format,
                                    const Value& arguments);

// str.format; fields may reach into values only as the sandbox lets a template
// do. `arguments` are those after the format itself.
absl::StatusOr<Value> BraceFormat(Runtime& runtime, const Text& format,
                                  const Arguments& arguments);

// Appends a number as `layout` says; type d i o x X e E f F g G % n or 0.
absl::Status AppendNumber(const Value& number, const FieldLayout& layout,
                          TextWriter& writer);
// Appends text padded to the width and cut to the precision.
absl::Status AppendPadded(const Text& text, const FieldLayout& layout,
                          char align_otherwise, TextWriter& writer);

}  // namespace millrace::model::jinja
