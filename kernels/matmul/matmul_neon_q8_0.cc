#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonQ80 = {
    MatMulTiles<FastKernel<WeightFormat::kQ8_0>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ8_0>>};

}  // namespace millrace::kernels
