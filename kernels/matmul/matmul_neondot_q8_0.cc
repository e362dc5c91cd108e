#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ80 = MatMulTiles<FastKernel<WeightFormat::kQ8_0>>;

}  // namespace millrace::kernels
