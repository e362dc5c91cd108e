#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Int4 = {
    MatMulTiles<FastKernel<WeightFormat::kInt4>>,
    MatMulTiles<ExactKernel<WeightFormat::kInt4>>};
const MatMulPair kMatMulAvx2Int4F16 = {
    MatMulTiles<FastKernel<WeightFormat::kInt4F16>>,
    MatMulTiles<ExactKernel<WeightFormat::kInt4F16>>};

}  // namespace millrace::kernels
