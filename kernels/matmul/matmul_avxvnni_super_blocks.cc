#include "kernels/matmul/avxvnni_quant.h"
#include "kernels/matmul/matmul_avxvnni.h"

namespace millrace::kernels {

void SetAvxVnniSuperBlocks(MatMulFn* fast) {
  using enum WeightFormat;
  SetFast<kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K>(fast);
}

}  // namespace millrace::kernels
