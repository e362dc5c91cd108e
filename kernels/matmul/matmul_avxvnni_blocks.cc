#include "kernels/matmul/avxvnni_quant.h"
#include "kernels/matmul/matmul_avxvnni.h"

namespace millrace::kernels {

void SetAvxVnniBlocks(MatMulFn* fast) {
  using enum WeightFormat;
  SetFast<kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0>(fast);
}

}  // namespace millrace::kernels
