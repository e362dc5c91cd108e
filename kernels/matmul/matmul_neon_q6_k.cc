#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonQ6K = {
    MatMulTiles<FastKernel<WeightFormat::kQ6_K>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ6_K>>};

}  // namespace millrace::kernels
