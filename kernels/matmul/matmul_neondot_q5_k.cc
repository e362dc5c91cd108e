#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotQ5K = MatMulTiles<FastKernel<WeightFormat::kQ5_K>>;

}  // namespace millrace::kernels
