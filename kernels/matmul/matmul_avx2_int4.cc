#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Int4 = {MatMulFast<WeightFormat::kInt4>,
                                    MatMulExact<WeightFormat::kInt4>};
const MatMulPair kMatMulAvx2Int4F16 = {MatMulFast<WeightFormat::kInt4F16>,
                                       MatMulExact<WeightFormat::kInt4F16>};

}  // namespace millrace::kernels
