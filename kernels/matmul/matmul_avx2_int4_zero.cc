#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Int4Zero = {MatMulFast<WeightFormat::kInt4Zero>,
                                        MatMulExact<WeightFormat::kInt4Zero>};
const MatMulPair kMatMulAvx2Int4ZeroF16 = {
    MatMulFast<WeightFormat::kInt4ZeroF16>,
    MatMulExact<WeightFormat::kInt4ZeroF16>};

}  // namespace millrace::kernels
