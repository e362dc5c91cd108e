#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotInt4 =
    MatMulTiles<FastKernel<WeightFormat::kInt4>>;
const MatMulFn kMatMulNeonDotInt4F16 =
    MatMulTiles<FastKernel<WeightFormat::kInt4F16>>;

}  // namespace millrace::kernels
