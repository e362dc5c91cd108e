#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Mxfp4 = {
    MatMulTiles<FastKernel<WeightFormat::kMxfp4>>,
    MatMulExact<WeightFormat::kMxfp4>};

}  // namespace millrace::kernels
