#pragma once

#include <cstdint>

namespace millrace::kernels {

// Bytes of packed activations that a product goes through before it takes the
// next tiles: from 1 MiB on they stay in the second-level cache beside the
// weights and results that pass. 448 KiB to 1 MiB. Any thread.
int64_t TokenBlockBytes();

}  // namespace millrace::kernels
