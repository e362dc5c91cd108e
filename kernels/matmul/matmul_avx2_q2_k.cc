#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q2K = {
    MatMulTiles<FastKernel<WeightFormat::kQ2_K>>,
    MatMulTiles<ExactKernel<WeightFormat::kQ2_K>>};

}  // namespace millrace::kernels
