#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonMxfp4 = {
    MatMulTiles<FastKernel<WeightFormat::kMxfp4>>,
    MatMulTiles<ExactKernel<WeightFormat::kMxfp4>>};

}  // namespace millrace::kernels
