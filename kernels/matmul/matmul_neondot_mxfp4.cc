#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotMxfp4 =
    MatMulTiles<FastKernel<WeightFormat::kMxfp4>>;

}  // namespace millrace::kernels
