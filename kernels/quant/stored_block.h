#pragma once

#include <cstddef>

namespace millrace::kernels {

// Nibbles of 32 elements from adjacent pairs (byte b: elements 2b and 2b + 1,
// as safetensors hold MXFP4) to halves (byte j: elements j and j + 16, the
// stored block's order). 16 bytes each, any alignment; must not overlap.
void PairsToHalves(const std::byte* pairs, std::byte* halves);

}  // namespace millrace::kernels
