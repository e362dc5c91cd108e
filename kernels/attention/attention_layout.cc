#include "kernels/attention/attention_layout.h"

#include "kernels/attention/attention.h"

namespace millrace::kernels {

int64_t KvBlockBytes(KvType type, int64_t num_kv_heads, int64_t head_dim) {
  const int64_t element_bytes = type == KvType::kF32 ? 4 : 2;
  return num_kv_heads * 2 * kKvBlockPositions * head_dim * element_bytes;
}

int64_t AttentionScratchBytes(int64_t num_heads, int64_t num_kv_heads,
                              int64_t head_dim) {
  const AttentionScratch layout =
      MakeAttentionScratch(num_heads / num_kv_heads, head_dim);
  return layout.total_floats * static_cast<int64_t>(sizeof(float));
}

}  // namespace millrace::kernels
