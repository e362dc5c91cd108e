#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Mxfp4 = {
    MatMulTiles<FastKernel<WeightFormat::kMxfp4>>,
    MatMulTiles<ExactKernel<WeightFormat::kMxfp4>>};

}  // namespace millrace::kernels
