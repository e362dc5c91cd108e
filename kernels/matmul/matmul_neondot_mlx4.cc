#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotMlx4 =
    MatMulTiles<FastKernel<WeightFormat::kMlx4>>;
const MatMulFn kMatMulNeonDotMlx4F16 =
    MatMulTiles<FastKernel<WeightFormat::kMlx4F16>>;

}  // namespace millrace::kernels
