// A cost file is refused or read; it never crashes, hangs or takes more memory
// than its own size calls for.

#include <cstddef>
#include <cstdint>

#include "planner/costs_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  millrace::planner::ParseCosts(text, "fuzz").status().IgnoreError();
  return 0;
}
