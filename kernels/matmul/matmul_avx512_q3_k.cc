#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q3K = {
    MatMulTiles<FastKernel<WeightFormat::kQ3_K>>,
    MatMulExact<WeightFormat::kQ3_K>};

}  // namespace millrace::kernels
