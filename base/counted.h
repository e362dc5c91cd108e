#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace {

// A number and what it counts, for people: "1 layer", "3 layers". `noun` is the
// word for one and takes an s for any other number.
std::string Counted(int64_t count, absl::string_view noun);

// The word alone, where the number is written in another way.
std::string NounFor(int64_t count, absl::string_view noun);

}  // namespace millrace
