#include "kernels/matmul/avx512_quant.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx512Iq4Nl = {
    MatMulTiles<FastKernel<WeightFormat::kIq4Nl>>,
    MatMulExact<WeightFormat::kIq4Nl>};

}  // namespace millrace::kernels
