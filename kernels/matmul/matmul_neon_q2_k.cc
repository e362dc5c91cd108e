#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonQ2K = {
    MatMulTiles<FastKernel<WeightFormat::kQ2_K>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ2_K>>};

}  // namespace millrace::kernels
