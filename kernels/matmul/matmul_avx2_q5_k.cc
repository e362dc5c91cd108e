#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Q5K = {MatMulFast<WeightFormat::kQ5_K>,
                                   MatMulExact<WeightFormat::kQ5_K>};

}  // namespace millrace::kernels
