#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q80 = {
    MatMulTiles<FastKernel<WeightFormat::kQ8_0>>,
    MatMulExact<WeightFormat::kQ8_0>};

}  // namespace millrace::kernels
