#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotInt4Zero =
    MatMulTiles<FastKernel<WeightFormat::kInt4Zero>>;
const MatMulFn kMatMulNeonDotInt4ZeroF16 =
    MatMulTiles<FastKernel<WeightFormat::kInt4ZeroF16>>;

}  // namespace millrace::kernels
