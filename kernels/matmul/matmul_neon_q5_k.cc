#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonQ5K = {
    MatMulTiles<FastKernel<WeightFormat::kQ5_K>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ5_K>>};

}  // namespace millrace::kernels
