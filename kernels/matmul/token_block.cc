#include "kernels/matmul/token_block.h"

#include <unistd.h>

#include <algorithm>

namespace millrace::kernels {

int64_t TokenBlockBytes() {
  // Seven sixteenths, and of caches beyond 2 MiB no more: what 1 MiB are for.
  static const int64_t bytes = [] {
    const int64_t cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return std::clamp(cache / 16 * 7, int64_t{448} << 10, int64_t{1} << 20);
  }();
  return bytes;
}

}  // namespace millrace::kernels
