#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q5K = {
    MatMulTiles<FastKernel<WeightFormat::kQ5_K>>,
    MatMulExact<WeightFormat::kQ5_K>};

}  // namespace millrace::kernels
