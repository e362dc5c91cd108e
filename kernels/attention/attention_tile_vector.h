#pragma once

#include "kernels/attention/attention_layout.h"
#include "kernels/attention/kv_store_vector.h"
#include "kernels/vector/functions_vector.h"

// The two matrix products of attention inside one block of 64 positions, and
// the softmax between them. A query is one head of one row; queries stand in
// groups of kAttentionGroup, so that a key or value read once serves all of
// them.
namespace millrace::kernels {
namespace {

constexpr int64_t kPositions = kKvBlockPositions;

constexpr int Smaller(int a, int b) { return a < b ? a : b; }

// Asks for the bytes [p, p + kBytes). The keys or values of one head in one
// block are too short a run for the processor's own prefetching: without this,
// decode over 4096 positions that lie in memory takes 1.25 (heads of 64) to 1.4
// times as long (heads of 128; Zen 4, 32 heads over 8, f16).
template <int64_t kBytes>
void Prefetch(const std::byte* p) {
#pragma GCC unroll 8
  for (int64_t at = 0; at < kBytes; at += 64) {
    __builtin_prefetch(p + at);
  }
}

// scores[i][16 g ..] = sum over d of q[d][i] * k[g][d][..], d ascending, for
// kQueries queries and kTiles groups of 16 positions. Positions lie in the
// lanes.
//   k  [kTiles][dims][16], q [dims][kAttentionGroup], scores [..][64]
//   ahead  as many bytes as k that are needed soon
template <typename Kv, int kQueries, int kTiles>
void Scores(const std::byte* k, const std::byte* ahead, int64_t dims,
            const float* q, float* scores) {
  const int64_t tile_bytes = dims * 16 * Kv::kBytes;
  Lanes sum[kQueries][kTiles];
#pragma GCC unroll 16
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 16
    for (int g = 0; g < kTiles; ++g) {
      sum[i][g] = Set1(0.0f);
    }
  }
  for (int64_t d = 0; d < dims; ++d) {
    Prefetch<kTiles * 16 * Kv::kBytes>(ahead + d * kTiles * 16 * Kv::kBytes);
    Lanes key[kTiles];
#pragma GCC unroll 16
    for (int g = 0; g < kTiles; ++g) {
      key[g] = Kv::LoadAll(k + g * tile_bytes + d * 16 * Kv::kBytes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kQueries; ++i) {
      const Lanes query = Set1(q[d * kAttentionGroup + i]);
#pragma GCC unroll 16
      for (int g = 0; g < kTiles; ++g) {
        sum[i][g] = Fma(query, key[g], sum[i][g]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 16
    for (int g = 0; g < kTiles; ++g) {
      Store(sum[i][g], scores + i * kPositions + g * 16);
    }
  }
}

// The keys that ScoreTiles and ScoreGroup walk.
struct KeyBlock {
  const std::byte* k;      // [4][dims][16] of the block
  const std::byte* ahead;  // as many bytes that are needed soon
  int64_t dims;
  int64_t tile_begin;  // groups of 16 positions
  int64_t tile_end;
};

// All groups of 16 positions in [tile_begin, tile_end) for kQueries queries.
template <typename Kv, int kQueries>
void ScoreTiles(const KeyBlock& keys, const float* q, float* scores) {
  constexpr int kTiles = Smaller(4, kAccumulators / kQueries);
  const int64_t tile_bytes = keys.dims * 16 * Kv::kBytes;
  int64_t tile = keys.tile_begin;
  if constexpr (kTiles > 1) {
    for (; tile + kTiles <= keys.tile_end; tile += kTiles) {
      Scores<Kv, kQueries, kTiles>(keys.k + tile * tile_bytes,
                                   keys.ahead + tile * tile_bytes, keys.dims, q,
                                   scores + tile * 16);
    }
  }
  for (; tile < keys.tile_end; ++tile) {
    Scores<Kv, kQueries, 1>(keys.k + tile * tile_bytes,
                            keys.ahead + tile * tile_bytes, keys.dims, q,
                            scores + tile * 16);
  }
}

// Scores of `num_queries` of one group.
template <typename Kv>
void ScoreGroup(const KeyBlock& keys, const float* q, int64_t num_queries,
                float* scores) {
  int64_t i = 0;
  while (i < num_queries) {
    const int64_t left = num_queries - i;
    float* out = scores + i * kPositions;
    if (kQueriesMax >= 8 && left > 4) {
      ScoreTiles<Kv, Smaller(8, kQueriesMax)>(keys, q + i, out);
      i += kQueriesMax;
    } else if (left > 3) {
      ScoreTiles<Kv, 4>(keys, q + i, out);
      i += 4;
    } else if (left == 3) {
      ScoreTiles<Kv, 3>(keys, q + i, out);
      i += 3;
    } else if (left == 2) {
      ScoreTiles<Kv, 2>(keys, q + i, out);
      i += 2;
    } else {
      ScoreTiles<Kv, 1>(keys, q + i, out);
      i += 1;
    }
  }
}

// What the next three walk: neighbouring queries over the same positions.
struct ValueRun {
  const std::byte* v;      // [64][dims] of the block
  const std::byte* ahead;  // as many bytes that are needed soon
  int64_t dims;
  const float* p;  // [..][64]
  int64_t begin;
  int64_t end;
  float* acc;  // [..][acc_stride]
  int64_t acc_stride;
};

// acc[i][d..] = fma(p[i][j], v[j][d..], acc[i][d..]) for the run's positions j,
// ascending, kQueries queries and kVectors vectors of dims from d on. If
// kPartial the vector is the last and holds what is left of the dims.
template <typename Kv, int kQueries, int kVectors, bool kPartial>
void Values(const ValueRun& run, int64_t d) {
  const std::byte* v = run.v + d * Kv::kBytes;
  const std::byte* ahead = run.ahead + d * kPositions * Kv::kBytes;
  const int64_t row_bytes = run.dims * Kv::kBytes;
  float* acc = run.acc + d;
  Lanes sum[kQueries][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 16
    for (int c = 0; c < kVectors; ++c) {
      sum[i][c] = Load(acc + i * run.acc_stride + c * 16);
    }
  }
  for (int64_t j = run.begin; j < run.end; ++j) {
    if constexpr (!kPartial) {
      Prefetch<kVectors * 16 * Kv::kBytes>(ahead +
                                           j * kVectors * 16 * Kv::kBytes);
    }
    Lanes value[kVectors];
#pragma GCC unroll 16
    for (int c = 0; c < kVectors; ++c) {
      const std::byte* at = v + j * row_bytes + c * 16 * Kv::kBytes;
      value[c] = kPartial && c == kVectors - 1 ? Kv::LoadSome(at, run.dims - d)
                                               : Kv::LoadAll(at);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kQueries; ++i) {
      const Lanes weight = Set1(run.p[i * kPositions + j]);
#pragma GCC unroll 16
      for (int c = 0; c < kVectors; ++c) {
        sum[i][c] = Fma(weight, value[c], sum[i][c]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 16
    for (int c = 0; c < kVectors; ++c) {
      Store(sum[i][c], acc + i * run.acc_stride + c * 16);
    }
  }
}

// All dims for kQueries queries.
template <typename Kv, int kQueries>
void ValueDims(const ValueRun& run) {
  constexpr int kVectors = Smaller(4, kAccumulators / kQueries);
  int64_t d = 0;
  if constexpr (kVectors > 1) {
    for (; d + kVectors * 16 <= run.dims; d += kVectors * 16) {
      Values<Kv, kQueries, kVectors, false>(run, d);
    }
  }
  for (; d + 16 <= run.dims; d += 16) {
    Values<Kv, kQueries, 1, false>(run, d);
  }
  if (d < run.dims) {
    Values<Kv, kQueries, 1, true>(run, d);
  }
}

// `num_queries` queries; no more rows of p and acc are touched.
template <typename Kv>
void ValueGroup(ValueRun run, int64_t num_queries) {
  while (num_queries > 0 && run.begin < run.end) {
    int64_t taken = 1;
    if (kQueriesMax >= 8 && num_queries >= 8) {
      ValueDims<Kv, Smaller(8, kQueriesMax)>(run);
      taken = 8;
    } else if (num_queries >= 4) {
      ValueDims<Kv, 4>(run);
      taken = 4;
    } else if (num_queries == 3) {
      ValueDims<Kv, 3>(run);
      taken = 3;
    } else if (num_queries == 2) {
      ValueDims<Kv, 2>(run);
      taken = 2;
    } else {
      ValueDims<Kv, 1>(run);
    }
    run.p += taken * kPositions;
    run.acc += taken * run.acc_stride;
    num_queries -= taken;
  }
}

// One query's state between blocks.
struct SoftmaxState {
  float* max;    // running maximum
  float* lanes;  // [16] sums of probabilities
  float* acc;    // [acc_dims], a multiple of 16
  int64_t acc_dims;
};

// Turns the scores of positions [begin, end) into probabilities in place and
// takes them into the state. Other places hold anything before and after.
inline void TakeScores(float* scores, int64_t begin, int64_t end,
                       const SoftmaxState& state) {
  const int64_t first = begin / 16 * 16;
  const Lanes lowest = Set1(-kInfinity);
  Lanes largest = lowest;
  for (int64_t j = first; j < end; j += 16) {
    largest =
        Max(KeepRange(Load(scores + j), begin - j, end - j, lowest), largest);
  }
  const float block_max = LargestLane(largest);
  const float max = block_max > *state.max ? block_max : *state.max;
  Lanes sum = Load(state.lanes);
  if (!(max == *state.max)) {
    const Lanes factor = Exp(Set1(*state.max - max));
    sum = sum * factor;
    for (int64_t d = 0; d < state.acc_dims; d += 16) {
      Store(Load(state.acc + d) * factor, state.acc + d);
    }
  }
  *state.max = max;
  const Lanes shift = Set1(max);
  for (int64_t j = first; j < end; j += 16) {
    const Lanes p = Exp(Load(scores + j) - shift);
    // Adding +0 changes no sum that began at +0.
    sum = sum + KeepRange(p, begin - j, end - j, Set1(0.0f));
    Store(p, scores + j);
  }
  Store(sum, state.lanes);
}

}  // namespace
}  // namespace millrace::kernels
