#include "kernels/attention/attention_layout.h"

#include "kernels/attention/attention.h"

namespace millrace::kernels {

int64_t KvBlockBytes(KvType type, int64_t num_kv_heads, int64_t head_dim) {
  int64_t bytes = 0;  // of a key or value of one head
  switch (type) {
    case KvType::kF32:
      bytes = 4 * head_dim;
      break;
    case KvType::kF16:
    case KvType::kBf16:
      bytes = 2 * head_dim;
      break;
    case KvType::kInt8:
      bytes = head_dim + 4 * KvScaleGroups(head_dim);
      break;
  }
  return num_kv_heads * 2 * kKvBlockPositions * bytes;
}

int64_t AttentionScratchBytes(int64_t num_heads, int64_t num_kv_heads,
                              int64_t head_dim) {
  const AttentionScratch layout =
      MakeAttentionScratch(num_heads / num_kv_heads, head_dim);
  return layout.total_floats * static_cast<int64_t>(sizeof(float));
}

}  // namespace millrace::kernels
