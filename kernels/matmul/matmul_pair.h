#pragma once

#include "kernels/matmul/matmul.h"

namespace millrace::kernels {

// The two modes of one format, compiled in a file of their own for each
// instruction set.
struct MatMulPair {
  MatMulFn fast;
  MatMulFn exact;
};

}  // namespace millrace::kernels
