#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ40 = MatMulTiles<FastKernel<WeightFormat::kQ4_0>>;

}  // namespace millrace::kernels
