#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q6K = {MatMulFast<WeightFormat::kQ6_K>,
                                   MatMulExact<WeightFormat::kQ6_K>};

}  // namespace millrace::kernels
