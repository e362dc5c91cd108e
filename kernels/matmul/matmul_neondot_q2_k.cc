#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ2K = MatMulTiles<FastKernel<WeightFormat::kQ2_K>>;

}  // namespace millrace::kernels
