#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Mlx4 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx4>>,
    MatMulTiles<ExactKernel<WeightFormat::kMlx4>>};
const MatMulPair kMatMulAvx2Mlx4F16 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx4F16>>,
    MatMulTiles<ExactKernel<WeightFormat::kMlx4F16>>};

}  // namespace millrace::kernels
