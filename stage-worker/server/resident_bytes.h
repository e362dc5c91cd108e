#pragma once

#include <cstdint>

namespace millrace::worker {

// Resident set of this process in bytes; 0 where the system does not tell.
int64_t ResidentBytes();

}  // namespace millrace::worker
