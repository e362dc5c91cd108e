#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/neon_exact.h"
#include "kernels/matmul/neon_quant.h"

namespace millrace::kernels {

const MatMulPair kMatMulNeonInt4Zero = {
    MatMulTiles<FastKernel<WeightFormat::kInt4Zero>>,
    MatMulTiles<ExactKernel<WeightFormat::kInt4Zero>>};
const MatMulPair kMatMulNeonInt4ZeroF16 = {
    MatMulTiles<FastKernel<WeightFormat::kInt4ZeroF16>>,
    MatMulTiles<ExactKernel<WeightFormat::kInt4ZeroF16>>};

}  // namespace millrace::kernels
