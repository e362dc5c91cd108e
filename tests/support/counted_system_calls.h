#pragma once

#include <atomic>

namespace millrace::testing {

// System calls that were tried; lies in memory shared with the process that
// reads it, since who counts can write to no file.
struct SystemCalls {
  std::atomic<int> num{0};
  std::atomic<int> first{-1};  // number of the first one
};

// From here on every system call of this process, on whichever thread, is
// counted instead of done and fails with ENOSYS, but for those that waiting
// takes (futex, sched_yield, clock_gettime) and the end of the process.
// Cannot be undone: call it in a forked child that ends by _exit. Returns 0, or
// errno where this kernel refuses filters.
int CountSystemCalls(SystemCalls& calls);

}  // namespace millrace::testing
