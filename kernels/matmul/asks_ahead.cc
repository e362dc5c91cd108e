#include "kernels/matmul/asks_ahead.h"

namespace millrace::kernels {

bool AsksAhead() {
#if defined(__x86_64__)
  static const bool asks = __builtin_cpu_is("intel") != 0;
  return asks;
#else
  return false;
#endif
}

}  // namespace millrace::kernels
