#pragma once

#include <cstdint>

namespace millrace::kernels {

// Query heads are computed this many at a time; longer runs of rows of one
// sequence are cut so that about kAttentionQueries share a walk over the keys.
inline constexpr int64_t kAttentionGroup = 8;
inline constexpr int64_t kAttentionQueries = 32;

// Dims of a head that share one scale in KvType::kInt8.
inline constexpr int64_t kKvScaleDims = 32;

static constexpr int64_t KvScaleGroups(int64_t head_dim) {
  return (head_dim + kKvScaleDims - 1) / kKvScaleDims;
}

// Where the vector versions keep what, in floats from the start of the scratch;
// each part begins at a multiple of 16. A query is one head of one row.
struct AttentionScratch {
  int64_t queries_max;   // multiple of kAttentionGroup
  int64_t dims_padded;   // head_dim up to a multiple of 16
  int64_t q;             // [groups][head_dim][kAttentionGroup], scaled
  int64_t acc;           // [queries_max][dims_padded]
  int64_t lanes;         // [queries_max][16] sums of probabilities
  int64_t max;           // [queries_max] running maximum
  int64_t scores;        // [kAttentionGroup][64]
  int64_t total_floats;  // multiple of 16
};

// constexpr and static: files for one instruction set use it too, and must not
// leave a shared copy of it compiled for that set.
static constexpr AttentionScratch MakeAttentionScratch(int64_t heads_per_kv,
                                                       int64_t head_dim) {
  AttentionScratch s{};
  const int64_t wanted =
      heads_per_kv > kAttentionQueries ? heads_per_kv : kAttentionQueries;
  s.queries_max =
      (wanted + kAttentionGroup - 1) / kAttentionGroup * kAttentionGroup;
  s.dims_padded = (head_dim + 15) / 16 * 16;
  s.q = 0;
  s.acc = s.q + (s.queries_max * head_dim + 15) / 16 * 16;
  s.lanes = s.acc + s.queries_max * s.dims_padded;
  s.max = s.lanes + s.queries_max * 16;
  s.scores = s.max + (s.queries_max + 15) / 16 * 16;
  s.total_floats = s.scores + kAttentionGroup * 64;
  return s;
}

}  // namespace millrace::kernels
