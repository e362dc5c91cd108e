#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Mxfp4 = {MatMulFast<WeightFormat::kMxfp4>,
                                     MatMulExact<WeightFormat::kMxfp4>};

}  // namespace millrace::kernels
