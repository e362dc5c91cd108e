#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q6K = {
    MatMulTiles<FastKernel<WeightFormat::kQ6_K>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ6_K>>};

}  // namespace millrace::kernels
