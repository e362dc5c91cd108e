#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ6K = MatMulTiles<FastKernel<WeightFormat::kQ6_K>>;

}  // namespace millrace::kernels
