#pragma once

#include "kernels/matmul/matmul_pair.h"

namespace millrace::kernels {

extern const MatMulPair kMatMulNeonF32;
extern const MatMulPair kMatMulNeonF16;
extern const MatMulPair kMatMulNeonBf16;
extern const MatMulPair kMatMulNeonQ40;
extern const MatMulPair kMatMulNeonQ41;
extern const MatMulPair kMatMulNeonQ50;
extern const MatMulPair kMatMulNeonQ51;
extern const MatMulPair kMatMulNeonQ80;
extern const MatMulPair kMatMulNeonQ4K;
extern const MatMulPair kMatMulNeonQ5K;
extern const MatMulPair kMatMulNeonQ6K;
extern const MatMulPair kMatMulNeonQ2K;
extern const MatMulPair kMatMulNeonQ3K;
extern const MatMulPair kMatMulNeonIq4Nl;
extern const MatMulPair kMatMulNeonMxfp4;
extern const MatMulPair kMatMulNeonInt4;
extern const MatMulPair kMatMulNeonInt4F16;
extern const MatMulPair kMatMulNeonInt4Zero;
extern const MatMulPair kMatMulNeonInt4ZeroF16;
extern const MatMulPair kMatMulNeonMlx4;
extern const MatMulPair kMatMulNeonMlx4F16;
extern const MatMulPair kMatMulNeonMlx8;
extern const MatMulPair kMatMulNeonMlx8F16;

// Fast products by the byte dot instruction.
extern const MatMulFn kMatMulNeonDotQ40;
extern const MatMulFn kMatMulNeonDotQ41;
extern const MatMulFn kMatMulNeonDotQ50;
extern const MatMulFn kMatMulNeonDotQ51;
extern const MatMulFn kMatMulNeonDotQ80;
extern const MatMulFn kMatMulNeonDotQ4K;
extern const MatMulFn kMatMulNeonDotQ5K;
extern const MatMulFn kMatMulNeonDotQ6K;
extern const MatMulFn kMatMulNeonDotQ2K;
extern const MatMulFn kMatMulNeonDotQ3K;
extern const MatMulFn kMatMulNeonDotIq4Nl;
extern const MatMulFn kMatMulNeonDotMxfp4;
extern const MatMulFn kMatMulNeonDotInt4;
extern const MatMulFn kMatMulNeonDotInt4F16;
extern const MatMulFn kMatMulNeonDotInt4Zero;
extern const MatMulFn kMatMulNeonDotInt4ZeroF16;
extern const MatMulFn kMatMulNeonDotMlx4;
extern const MatMulFn kMatMulNeonDotMlx4F16;
extern const MatMulFn kMatMulNeonDotMlx8;
extern const MatMulFn kMatMulNeonDotMlx8F16;

void PackInt8Neon(const PackActivationsArgs& args, int64_t panel_begin,
                  int64_t panel_end);

}  // namespace millrace::kernels
