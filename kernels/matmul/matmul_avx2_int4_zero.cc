#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Int4Zero = {
    MatMulTiles<FastKernel<WeightFormat::kInt4Zero>>,
    MatMulTiles<ExactKernel<WeightFormat::kInt4Zero>>};
const MatMulPair kMatMulAvx2Int4ZeroF16 = {
    MatMulTiles<FastKernel<WeightFormat::kInt4ZeroF16>>,
    MatMulTiles<ExactKernel<WeightFormat::kInt4ZeroF16>>};

}  // namespace millrace::kernels
