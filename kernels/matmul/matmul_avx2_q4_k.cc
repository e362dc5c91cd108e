#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q4K = {
    MatMulTiles<FastKernel<WeightFormat::kQ4_K>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ4_K>>};

}  // namespace millrace::kernels
