#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace::coordinator {

// The text with every maximal ill-formed part as one U+FFFD (Unicode 15,
// section 3.9), so that it can stand in JSON.
std::string WellFormed(absl::string_view bytes);
[[nodiscard]] bool IsWellFormed(absl::string_view bytes);

// Number of code points of well-formed text.
[[nodiscard]] int64_t CodePoints(absl::string_view text);

}  // namespace millrace::coordinator
