#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonInt4 = {
    MatMulTiles<FastKernel<WeightFormat::kInt4>>,
    MatMulTiles<ExactKernel<WeightFormat::kInt4>>};
const MatMulPair kMatMulNeonInt4F16 = {
    MatMulTiles<FastKernel<WeightFormat::kInt4F16>>,
    MatMulTiles<ExactKernel<WeightFormat::kInt4F16>>};

}  // namespace millrace::kernels
