#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q80 = {MatMulFast<WeightFormat::kQ8_0>,
                                   MatMulExact<WeightFormat::kQ8_0>};

}  // namespace millrace::kernels
