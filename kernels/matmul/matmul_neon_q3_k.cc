#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonQ3K = {
    MatMulTiles<FastKernel<WeightFormat::kQ3_K>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ3_K>>};

}  // namespace millrace::kernels
