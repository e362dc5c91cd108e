#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonQ4K = {
    MatMulTiles<FastKernel<WeightFormat::kQ4_K>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ4_K>>};

}  // namespace millrace::kernels
