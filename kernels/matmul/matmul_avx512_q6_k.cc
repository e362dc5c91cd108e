#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q6K = {
    MatMulTiles<FastKernel<WeightFormat::kQ6_K>>,
    MatMulExact<WeightFormat::kQ6_K>};

}  // namespace millrace::kernels
