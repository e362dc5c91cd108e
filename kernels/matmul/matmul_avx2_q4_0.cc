#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q40 = {MatMulFast<WeightFormat::kQ4_0>,
                                   MatMulExact<WeightFormat::kQ4_0>};

}  // namespace millrace::kernels
