// A plan file is refused or read; it never crashes, hangs or takes more memory
// than its own size calls for.

#include <cstddef>
#include <cstdint>

#include "planner/plan_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  millrace::planner::ParsePlan(text, "fuzz").status().IgnoreError();
  return 0;
}
