#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q4K = {
    MatMulTiles<FastKernel<WeightFormat::kQ4_K>>,
    MatMulExact<WeightFormat::kQ4_K>};

}  // namespace millrace::kernels
