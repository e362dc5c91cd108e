#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Mlx8 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx8>>,
    MatMulTiles<ExactKernel<WeightFormat::kMlx8>>};
const MatMulPair kMatMulAvx2Mlx8F16 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx8F16>>,
    MatMulTiles<ExactKernel<WeightFormat::kMlx8F16>>};

}  // namespace millrace::kernels
