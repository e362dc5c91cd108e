#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q50 = {MatMulFast<WeightFormat::kQ5_0>,
                                   MatMulExact<WeightFormat::kQ5_0>};

}  // namespace millrace::kernels
