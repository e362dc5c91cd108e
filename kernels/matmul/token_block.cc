#include "kernels/matmul/token_block.h"

#include <unistd.h>

#include <algorithm>

namespace millrace::kernels {

int64_t TokenBlockBytes() {
  // Seven sixteenths; of small caches, or where the size is not known, what was
  // good with 1 MiB, and of large ones no more than 1 MiB.
  static const int64_t bytes = [] {
    const int64_t cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return std::clamp(cache / 16 * 7, int64_t{448} << 10, int64_t{1} << 20);
  }();
  return bytes;
}

}  // namespace millrace::kernels
