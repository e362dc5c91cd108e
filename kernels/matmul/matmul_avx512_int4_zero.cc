#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Int4Zero = {
    MatMulTiles<FastKernel<WeightFormat::kInt4Zero>>,
    MatMulExact<WeightFormat::kInt4Zero>};
const MatMulPair kMatMulAvx512Int4ZeroF16 = {
    MatMulTiles<FastKernel<WeightFormat::kInt4ZeroF16>>,
    MatMulExact<WeightFormat::kInt4ZeroF16>};

}  // namespace millrace::kernels
