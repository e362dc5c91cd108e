#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonIq4Nl = {
    MatMulTiles<FastKernel<WeightFormat::kIq4Nl>>,
    MatMulTiles<ExactKernel<WeightFormat::kIq4Nl>>};

}  // namespace millrace::kernels
