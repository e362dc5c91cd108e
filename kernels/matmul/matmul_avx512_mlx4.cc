#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Mlx4 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx4>>,
    MatMulExact<WeightFormat::kMlx4>};
const MatMulPair kMatMulAvx512Mlx4F16 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx4F16>>,
    MatMulExact<WeightFormat::kMlx4F16>};

}  // namespace millrace::kernels
