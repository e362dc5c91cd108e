#pragma once

namespace millrace {

// Prints the condition, its place and a stack hint, then aborts.
[[noreturn]] void CheckFailed(const char* condition, const char* file,
                              int line);

}  // namespace millrace

// For what only a bug in this program can violate; anything that a file, a
// peer, an operator or the network can cause is an absl::Status instead.
#define MILLRACE_CHECK(condition)                              \
  do {                                                         \
    if (!(condition)) {                                        \
      ::millrace::CheckFailed(#condition, __FILE__, __LINE__); \
    }                                                          \
  } while (false)

#ifdef NDEBUG
#define MILLRACE_DCHECK(condition) \
  do {                             \
    (void)sizeof(condition);       \
  } while (false)
#else
#define MILLRACE_DCHECK(condition) MILLRACE_CHECK(condition)
#endif
