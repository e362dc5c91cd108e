#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonQ51 = {
    MatMulTiles<FastKernel<WeightFormat::kQ5_1>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ5_1>>};

}  // namespace millrace::kernels
