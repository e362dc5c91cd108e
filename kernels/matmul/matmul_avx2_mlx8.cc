#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Mlx8 = {MatMulFast<WeightFormat::kMlx8>,
                                    MatMulExact<WeightFormat::kMlx8>};
const MatMulPair kMatMulAvx2Mlx8F16 = {MatMulFast<WeightFormat::kMlx8F16>,
                                       MatMulExact<WeightFormat::kMlx8F16>};

}  // namespace millrace::kernels
