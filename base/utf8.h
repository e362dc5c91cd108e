#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace millrace {

// Length of the well-formed UTF-8 sequence at the front of `text`, which is not
// empty; 0 if there is none.
size_t Utf8SequenceLength(absl::string_view text);

// Whether all of it is well-formed.
bool IsUtf8(absl::string_view text);

}  // namespace millrace
