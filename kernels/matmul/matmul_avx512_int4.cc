#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Int4 = {
    MatMulTiles<FastKernel<WeightFormat::kInt4>>,
    MatMulExact<WeightFormat::kInt4>};
const MatMulPair kMatMulAvx512Int4F16 = {
    MatMulTiles<FastKernel<WeightFormat::kInt4F16>>,
    MatMulExact<WeightFormat::kInt4F16>};

}  // namespace millrace::kernels
