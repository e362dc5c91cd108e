#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q50 = {
    MatMulTiles<FastKernel<WeightFormat::kQ5_0>>,
    MatMulExact<WeightFormat::kQ5_0>};

}  // namespace millrace::kernels
