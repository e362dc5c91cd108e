#pragma once

#include "kernels/matmul/matmul.h"

namespace millrace::kernels {

// Each sets the fast products of a family of formats, indexed by format. They
// and what they set need AVX2 and AVX-VNNI.
void SetAvxVnniBlocks(MatMulFn* fast);       // GGUF: blocks of 32
void SetAvxVnniSuperBlocks(MatMulFn* fast);  // GGUF: blocks of 256
void SetAvxVnniTables(MatMulFn* fast);       // codes that are no numbers
void SetAvxVnniGrouped(MatMulFn* fast);      // INT4 and MLX

}  // namespace millrace::kernels
