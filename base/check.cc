#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace millrace {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "millrace: check failed: %s at %s:%d\n", condition, file,
               line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace millrace
