#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ51 = MatMulTiles<FastKernel<WeightFormat::kQ5_1>>;

}  // namespace millrace::kernels
