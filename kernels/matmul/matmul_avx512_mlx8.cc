#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Mlx8 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx8>>,
    MatMulExact<WeightFormat::kMlx8>};
const MatMulPair kMatMulAvx512Mlx8F16 = {
    MatMulTiles<FastKernel<WeightFormat::kMlx8F16>>,
    MatMulExact<WeightFormat::kMlx8F16>};

}  // namespace millrace::kernels
