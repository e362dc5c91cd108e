#pragma once

#include <cstdint>

namespace millrace::worker {

// Resident set of this process in bytes; 0 where the system does not tell.
int64_t ResidentBytes();

// Hands memory that was freed back to the system, so that what was read to load
// a stage does not stay resident beside it.
void ReturnFreedMemory();

}  // namespace millrace::worker
