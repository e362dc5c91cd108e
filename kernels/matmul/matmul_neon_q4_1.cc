#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonQ41 = {
    MatMulTiles<FastKernel<WeightFormat::kQ4_1>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ4_1>>};

}  // namespace millrace::kernels
