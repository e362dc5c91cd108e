#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotMlx8 =
    MatMulTiles<FastKernel<WeightFormat::kMlx8>>;
const MatMulFn kMatMulNeonDotMlx8F16 =
    MatMulTiles<FastKernel<WeightFormat::kMlx8F16>>;

}  // namespace millrace::kernels
