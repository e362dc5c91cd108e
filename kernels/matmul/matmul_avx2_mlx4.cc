#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Mlx4 = {MatMulFast<WeightFormat::kMlx4>,
                                    MatMulExact<WeightFormat::kMlx4>};
const MatMulPair kMatMulAvx2Mlx4F16 = {MatMulFast<WeightFormat::kMlx4F16>,
                                       MatMulExact<WeightFormat::kMlx4F16>};

}  // namespace millrace::kernels
