#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q3K = {
    MatMulTiles<FastKernel<WeightFormat::kQ3_K>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ3_K>>};

}  // namespace millrace::kernels
