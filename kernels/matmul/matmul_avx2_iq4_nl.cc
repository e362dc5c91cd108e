#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Iq4Nl = {
    MatMulTiles<FastKernel<WeightFormat::kIq4Nl>>,
    MatMulTiles<ExactKernel<WeightFormat::kIq4Nl>>};

}  // namespace millrace::kernels
