#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q80 = {
    MatMulTiles<FastKernel<WeightFormat::kQ8_0>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ8_0>>};

}  // namespace millrace::kernels
