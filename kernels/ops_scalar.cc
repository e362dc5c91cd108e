#include "kernels/ops_scalar.h"

#include "kernels/kernel_table.h"
#include "kernels/ops_versions.h"

namespace millrace::kernels {

void AddScalarOps(KernelTable& table) {
  table.rms_norm = scalar::RmsNorm;
  table.swiglu = scalar::Swiglu;
  table.add = scalar::Add;
  table.axpy = scalar::Axpy;
  table.rope = scalar::Rope;
  table.softmax_router = scalar::SoftmaxRouter;
  table.kv_store[static_cast<int>(KvType::kF32)] = scalar::KvStoreF32;
  table.kv_store[static_cast<int>(KvType::kF16)] = scalar::KvStoreF16;
  table.kv_store[static_cast<int>(KvType::kBf16)] = scalar::KvStoreBf16;
  table.kv_store[static_cast<int>(KvType::kInt8)] = scalar::KvStoreInt8;
  table.attention[static_cast<int>(KvType::kF32)] = scalar::AttentionF32;
  table.attention[static_cast<int>(KvType::kF16)] = scalar::AttentionF16;
  table.attention[static_cast<int>(KvType::kBf16)] = scalar::AttentionBf16;
  table.attention[static_cast<int>(KvType::kInt8)] = scalar::AttentionInt8;
  table.sampling.row_max = scalar::RowMax;
  table.sampling.exp_block_sums = scalar::ExpBlockSums;
  table.sampling.divide = scalar::Divide;
}

}  // namespace millrace::kernels
