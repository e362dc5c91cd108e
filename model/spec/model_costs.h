#pragma once

#include <cstdint>

#include "model/spec/kv_format.h"
#include "model/spec/model_spec.h"

namespace millrace::model {

// What a layer, the embedding or the head costs: pure functions of the spec,
// used by the planner and by `inspect`. What a whole stage allocates is in
// stage_memory.h.

// Sums over the tensors of a part.
struct PartCosts {
  int64_t parameters = 0;
  // In the checkpoint.
  int64_t stored_bytes = 0;
  // In the memory of a stage: matrices as tiles of 16 rows, vectors as f32.
  int64_t tile_bytes = 0;
  int64_t vector_bytes = 0;
  // Of the tiles, those that one token reads: of an MoE layer the router and
  // experts_per_token experts, of an embedding one row (counted 0).
  int64_t read_bytes_per_token = 0;
  // Multiplications and additions of matrix products for one token; attention
  // over the cache is not in it.
  double operations_per_token = 0;

  [[nodiscard]] int64_t weights_bytes() const {
    return tile_bytes + vector_bytes;
  }
  PartCosts& operator+=(const PartCosts& other);
};

[[nodiscard]] PartCosts CostsOf(const LayerSpec& layer);
[[nodiscard]] PartCosts EmbeddingCosts(const ModelSpec& spec);
// Final norm and head. A tied head has no parameters and no stored bytes of its
// own, but the stage that holds it needs its tiles.
[[nodiscard]] PartCosts HeadCosts(const ModelSpec& spec);
// All of it in one process, a tied head counted once.
[[nodiscard]] PartCosts CostsOf(const ModelSpec& spec);

// Values (keys and values together) that one position keeps in a layer.
[[nodiscard]] int64_t KvValuesPerToken(const LayerSpec& layer);
// In bytes; without block rounding.
[[nodiscard]] int64_t KvBytesPerToken(const LayerSpec& layer,
                                      const KvFormat& format);
// Window of the attention of a layer, 0 for all keys or no attention.
[[nodiscard]] int64_t WindowOf(const LayerSpec& layer);
// Multiplications and additions of attention for one token that sees
// `num_keys` keys.
[[nodiscard]] double AttentionOperations(const LayerSpec& layer,
                                         int64_t num_keys);
// "dense", "moe" with what precedes it: "attention", "window"; for people.
[[nodiscard]] const char* KindOf(const LayerSpec& layer);

}  // namespace millrace::model
