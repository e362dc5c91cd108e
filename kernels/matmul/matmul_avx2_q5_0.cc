#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q50 = {
    MatMulTiles<FastKernel<WeightFormat::kQ5_0>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ5_0>>};

}  // namespace millrace::kernels
