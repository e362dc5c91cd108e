#include "kernels/matmul/avx2_exact.h"
#include "kernels/matmul/avx2_many.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {

const MatMulPair kMatMulAvx2Iq4Nl = {MatMulFast<WeightFormat::kIq4Nl>,
                                     MatMulExact<WeightFormat::kIq4Nl>};

}  // namespace millrace::kernels
