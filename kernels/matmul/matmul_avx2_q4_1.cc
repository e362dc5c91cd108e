#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q41 = {
    MatMulTiles<FastKernel<WeightFormat::kQ4_1>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ4_1>>};

}  // namespace millrace::kernels
