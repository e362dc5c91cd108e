#pragma once

#include <cstdint>

namespace millrace::testing {

// Allocations by operator new since the program began, on all threads. Linking
// counted_allocations.cc replaces operator new for the whole program, so that a
// test which counts is a program of its own.
int64_t NumAllocations();
// Bytes that they asked for; what was freed is not taken off.
int64_t AllocatedBytes();

}  // namespace millrace::testing
