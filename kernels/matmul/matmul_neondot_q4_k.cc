#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ4K = MatMulTiles<FastKernel<WeightFormat::kQ4_K>>;

}  // namespace millrace::kernels
