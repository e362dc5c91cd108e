#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulFn kMatMulNeonDotIq4Nl =
    MatMulTiles<FastKernel<WeightFormat::kIq4Nl>>;

}  // namespace millrace::kernels
