#pragma once

// AVX-512 without AVX-512: included before everything else in sources written
// for it, this turns their intrinsics into code for AVX2 and says that the
// instruction set is there. Most come from SIMDe; those that it lacks or that
// do not give the processor's bits (scalef by libm, the paired dot unfused) are
// ours, each a plain reading of its instruction. One that neither has fails to
// compile ("target specific option mismatch"): write it beside its like.
//
// A function here is static, like SIMDe's: kernels may not emit weak symbols.

#define SIMDE_ENABLE_NATIVE_ALIASES
// Calls: inlined into unrolled loops, each file would take minutes.
#define SIMDE_NO_INLINE
#include <simde/x86/avx512.h>

#define __AVX512F__ 1

#include "tests/support/emulated_avx512/arithmetic.h"
#include "tests/support/emulated_avx512/conversions.h"
#include "tests/support/emulated_avx512/masked_memory.h"
#include "tests/support/emulated_avx512/tiles.h"
