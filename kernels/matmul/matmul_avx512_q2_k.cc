#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Q2K = {
    MatMulTiles<FastKernel<WeightFormat::kQ2_K>>,
    MatMulExact<WeightFormat::kQ2_K>};

}  // namespace millrace::kernels
