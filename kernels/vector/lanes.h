#pragma once

// Sixteen float lanes, `Lanes`, for the instruction set that the including file
// is compiled for; kernels/*/*_vector.h are written over it once. All of it
// lies in unnamed namespaces, so that code of an instruction set never becomes
// a symbol that the linker may share with the rest of the program. For the same
// reason those files use no inline functions of the standard library.
//
// A file that defines MILLRACE_ARRAY_LANES gets the array on Arm too, where
// every compiler knows NEON.
#if defined(__AVX512F__)
#include "kernels/vector/lanes_zmm.h"
#elif defined(__AVX2__)
#include "kernels/vector/lanes_ymm.h"
#elif defined(__aarch64__) && !defined(MILLRACE_ARRAY_LANES)
#include "kernels/vector/lanes_neon.h"
#else
#include "kernels/vector/lanes_array.h"
#endif
