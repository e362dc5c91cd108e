#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonQ40 = {
    MatMulTiles<FastKernel<WeightFormat::kQ4_0>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ4_0>>};

}  // namespace millrace::kernels
