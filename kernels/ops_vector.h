#pragma once

#include "kernels/activation/activation_vector.h"
#include "kernels/attention/attention_vector.h"
#include "kernels/kernel_table.h"
#include "kernels/norm/norm_vector.h"
#include "kernels/rope/rope_vector.h"
#include "kernels/router/router_vector.h"
#include "kernels/sampling/sampling_vector.h"

namespace millrace::kernels {
namespace {

// Puts the versions over the including file's lanes into the table.
inline void AddVectorOps(KernelTable& table) {
  table.rms_norm = RmsNorm;
  table.swiglu = Swiglu;
  table.add = Add;
  table.axpy = Axpy;
  table.rope = Rope;
  table.softmax_router = SoftmaxRouter;
  table.kv_store[static_cast<int>(KvType::kF16)] = KvStore<KvF16>;
  table.kv_store[static_cast<int>(KvType::kBf16)] = KvStore<KvBf16>;
  table.kv_store[static_cast<int>(KvType::kInt8)] = KvStoreInt8;
  table.attention[static_cast<int>(KvType::kF32)] = Attention<KvF32>;
  table.attention[static_cast<int>(KvType::kF16)] = Attention<KvF16>;
  table.attention[static_cast<int>(KvType::kBf16)] = Attention<KvBf16>;
  table.attention[static_cast<int>(KvType::kInt8)] = Attention<KvInt8>;
  table.sampling.row_max = RowMax;
  table.sampling.exp_block_sums = ExpBlockSums;
  table.sampling.divide = Divide;
}

}  // namespace
}  // namespace millrace::kernels
