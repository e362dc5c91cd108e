#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonMlx8 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx8>>,
    MatMulTiles<ExactKernel<WeightFormat::kMlx8>>};
const MatMulPair kMatMulNeonMlx8F16 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx8F16>>,
    MatMulTiles<ExactKernel<WeightFormat::kMlx8F16>>};

}  // namespace millrace::kernels
