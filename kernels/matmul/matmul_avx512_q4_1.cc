#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q41 = {
    MatMulTiles<FastKernel<WeightFormat::kQ4_1>>,
    MatMulExact<WeightFormat::kQ4_1>};

}  // namespace millrace::kernels
