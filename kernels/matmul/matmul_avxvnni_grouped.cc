#include "kernels/matmul/avxvnni_quant.h"
#include "kernels/matmul/matmul_avxvnni.h"

namespace millrace::kernels {

void SetAvxVnniGrouped(MatMulFn* fast) {
  using enum WeightFormat;
  SetFast<kInt4, kInt4F16, kInt4Zero, kInt4ZeroF16, kMlx4, kMlx4F16, kMlx8,
          kMlx8F16>(fast);
}

}  // namespace millrace::kernels
