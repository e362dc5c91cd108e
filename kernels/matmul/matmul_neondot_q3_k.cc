#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ3K = MatMulTiles<FastKernel<WeightFormat::kQ3_K>>;

}  // namespace millrace::kernels
