#include "kernels/matmul/avxvnni_quant.h"
#include "kernels/matmul/matmul_avxvnni.h"

namespace millrace::kernels {

void SetAvxVnniTables(MatMulFn* fast) {
  using enum WeightFormat;
  SetFast<kIq4Nl, kMxfp4>(fast);
}

}  // namespace millrace::kernels
