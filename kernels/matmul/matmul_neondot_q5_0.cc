#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ50 = MatMulTiles<FastKernel<WeightFormat::kQ5_0>>;

}  // namespace millrace::kernels
