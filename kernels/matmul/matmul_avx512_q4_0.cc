#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q40 = {
    MatMulTiles<FastKernel<WeightFormat::kQ4_0>>,
    MatMulExact<WeightFormat::kQ4_0>};

}  // namespace millrace::kernels
