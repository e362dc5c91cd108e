#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonMlx4 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx4>>,
    MatMulTiles<ExactKernel<WeightFormat::kMlx4>>};
const MatMulPair kMatMulNeonMlx4F16 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx4F16>>,
    MatMulTiles<ExactKernel<WeightFormat::kMlx4F16>>};

}  // namespace millrace::kernels
