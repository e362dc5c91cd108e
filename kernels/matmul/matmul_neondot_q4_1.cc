#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ41 = MatMulTiles<FastKernel<WeightFormat::kQ4_1>>;

}  // namespace millrace::kernels
