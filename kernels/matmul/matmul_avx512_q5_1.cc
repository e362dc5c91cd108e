#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q51 = {
    MatMulTiles<FastKernel<WeightFormat::kQ5_1>>,
    MatMulExact<WeightFormat::kQ5_1>};

}  // namespace millrace::kernels
