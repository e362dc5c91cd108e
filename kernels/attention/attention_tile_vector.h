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

// Dims or positions that one turn of an inner loop takes. Loops of 64 turns end
// in a mispredicted branch, loops of 16 do not.
constexpr int kTurn = 4;

// Vectors side by side for so many queries: as many as the registers hold, 1, 2
// or 4.
constexpr int VectorsFor(int queries) {
  const int most = kAccumulators / queries;
  return most >= 4 ? 4 : (most >= 2 ? 2 : 1);
}

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

// One dim of the sums below.
//   k       [kTiles] times [16], tile_bytes apart; q [kAttentionGroup]
//   scales  the same of a type with scales
template <typename Kv, int kQueries, int kTiles>
[[gnu::always_inline]] inline void ScoreDim(const std::byte* k,
                                            const std::byte* scales,
                                            int64_t tile_bytes, const float* q,
                                            Lanes (&sum)[kQueries][kTiles]) {
#pragma GCC unroll 16
  for (int g = 0; g < kTiles; ++g) {
    Lanes key = Kv::LoadAll(k + g * tile_bytes);
    if constexpr (Kv::kScaleBytes > 0) {
      key = Load(reinterpret_cast<const float*>(scales + g * tile_bytes)) * key;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kQueries; ++i) {
      sum[i][g] = Fma(Set1(q[i]), key, sum[i][g]);
    }
  }
}

// scores[i][16 g ..] = sum over d of q[d][i] * k[g][d][..], d ascending, for
// kQueries queries and kTiles groups of 16 positions. Positions lie in the
// lanes.
//   k  [kTiles][dims][16], each followed by its scales;
//   q  [dims][kAttentionGroup], scores [..][64]
//   ahead  as many bytes as k that are needed soon
template <typename Kv, int kQueries, int kTiles>
void Scores(const std::byte* k, const std::byte* ahead, int64_t dims,
            const float* q, float* scores) {
  constexpr int64_t kDimBytes = 16 * Kv::kBytes;
  constexpr int64_t kGroupBytes = 16 * Kv::kScaleBytes;
  const int64_t tile_bytes = KvTileBytes<Kv>(dims);
  const std::byte* scales = k + dims * kDimBytes;
  Lanes sum[kQueries][kTiles];
#pragma GCC unroll 16
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 16
    for (int g = 0; g < kTiles; ++g) {
      sum[i][g] = Set1(0.0f);
    }
  }
  if constexpr (kGroupBytes > 0) {
    for (int64_t g = 0; g < KvScaleGroups(dims); ++g) {
      Prefetch<kTiles * kGroupBytes>(ahead + dims * kTiles * kDimBytes +
                                     g * kTiles * kGroupBytes);
    }
  }
  // A turn lies inside one group.
  static_assert(kKvScaleDims % kTurn == 0);
  int64_t d = 0;
  for (; d + kTurn <= dims; d += kTurn) {
    Prefetch<kTurn * kTiles * kDimBytes>(ahead + d * kTiles * kDimBytes);
    const std::byte* scale = scales + d / kKvScaleDims * kGroupBytes;
#pragma GCC unroll 16
    for (int t = 0; t < kTurn; ++t) {
      ScoreDim<Kv, kQueries, kTiles>(k + (d + t) * kDimBytes, scale, tile_bytes,
                                     q + (d + t) * kAttentionGroup, sum);
    }
  }
  for (; d < dims; ++d) {
    ScoreDim<Kv, kQueries, kTiles>(k + d * kDimBytes,
                                   scales + d / kKvScaleDims * kGroupBytes,
                                   tile_bytes, q + d * kAttentionGroup, sum);
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
  const std::byte* k;      // [4][dims][16] of the block, with scales
  const std::byte* ahead;  // as many bytes that are needed soon
  int64_t dims;
  int64_t tile_begin;  // groups of 16 positions
  int64_t tile_end;
};

// All groups of 16 positions in [tile_begin, tile_end) for kQueries queries.
template <typename Kv, int kQueries>
void ScoreTiles(const KeyBlock& keys, const float* q, float* scores) {
  constexpr int kTiles = VectorsFor(kQueries);
  const int64_t tile_bytes = KvTileBytes<Kv>(keys.dims);
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
  const std::byte* v;      // [64][dims] of the block, then scales
  const std::byte* ahead;  // as many bytes that are needed soon
  int64_t dims;
  const float* p;  // [..][64]
  int64_t begin;
  int64_t end;
  float* acc;  // [..][acc_stride]
  int64_t acc_stride;
};

// One position of the sums below.
//   v       [dims_left] of the position, p [kQueries] kPositions apart
//   scales  of its groups, of a type with scales
template <typename Kv, int kQueries, int kVectors, bool kPartial>
[[gnu::always_inline]] inline void ValuePosition(
    const std::byte* v, const float* scales, int64_t dims_left, const float* p,
    Lanes (&sum)[kQueries][kVectors]) {
#pragma GCC unroll 16
  for (int c = 0; c < kVectors; ++c) {
    const std::byte* at = v + c * 16 * Kv::kBytes;
    Lanes value = kPartial ? Kv::LoadSome(at, dims_left) : Kv::LoadAll(at);
    if constexpr (Kv::kScaleBytes > 0) {
      value = Set1(scales[c * 16 / kKvScaleDims]) * value;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kQueries; ++i) {
      sum[i][c] = Fma(Set1(p[i * kPositions]), value, sum[i][c]);
    }
  }
}

// acc[i][d..] = fma(p[i][j], v[j][d..], acc[i][d..]) for the run's positions j,
// ascending, kQueries queries and kVectors vectors of dims from d on. If
// kPartial the one vector is the last and holds what is left of the dims.
// d is a multiple of 16 kVectors.
template <typename Kv, int kQueries, int kVectors, bool kPartial>
void Values(const ValueRun& run, int64_t d) {
  static_assert(!kPartial || kVectors == 1);
  constexpr int64_t kVectorBytes = kVectors * 16 * Kv::kBytes;
  const std::byte* v = run.v + d * Kv::kBytes;
  const std::byte* ahead = run.ahead + d * kPositions * Kv::kBytes;
  const int64_t row_bytes = run.dims * Kv::kBytes;
  const int64_t dims_left = run.dims - d;
  const float* scales = nullptr;  // of position 0, from the group of d on
  int64_t groups = 0;
  if constexpr (Kv::kScaleBytes > 0) {
    constexpr int64_t kAheadBytes =
        kVectorBytes * kPositions * Kv::kScaleBytes / kKvScaleDims;
    Prefetch<kAheadBytes>(run.ahead + kPositions * row_bytes +
                          d / kVectorBytes * kAheadBytes);
    scales = reinterpret_cast<const float*>(run.v + kPositions * row_bytes) +
             d / kKvScaleDims;
    groups = KvScaleGroups(run.dims);
  }
  float* acc = run.acc + d;
  Lanes sum[kQueries][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 16
    for (int c = 0; c < kVectors; ++c) {
      sum[i][c] = Load(acc + i * run.acc_stride + c * 16);
    }
  }
  int64_t j = run.begin;
  for (; j + kTurn <= run.end; j += kTurn) {
    if constexpr (!kPartial) {
      Prefetch<kTurn * kVectorBytes>(ahead + j * kVectorBytes);
    }
#pragma GCC unroll 16
    for (int t = 0; t < kTurn; ++t) {
      ValuePosition<Kv, kQueries, kVectors, kPartial>(
          v + (j + t) * row_bytes, scales + (j + t) * groups, dims_left,
          run.p + j + t, sum);
    }
  }
  for (; j < run.end; ++j) {
    ValuePosition<Kv, kQueries, kVectors, kPartial>(
        v + j * row_bytes, scales + j * groups, dims_left, run.p + j, sum);
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
  constexpr int kVectors = VectorsFor(kQueries);
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

// Takes a new maximum into the state and returns it.
inline float TakeMax(float block_max, const SoftmaxState& state) {
  const float before = *state.max;
  const float max = block_max > before ? block_max : before;
  *state.max = max;
  if (!(max == before)) {
    const Lanes factor = Exp(Set1(before - max));
    Store(Load(state.lanes) * factor, state.lanes);
    for (int64_t d = 0; d < state.acc_dims; d += 16) {
      Store(Load(state.acc + d) * factor, state.acc + d);
    }
  }
  return max;
}

// Turns the scores of a whole block into probabilities in place and takes them
// into the state.
inline void TakeAllScores(float* scores, const SoftmaxState& state) {
  constexpr int kVectors = kPositions / 16;
  Lanes score[kVectors];
#pragma GCC unroll 16
  for (int g = 0; g < kVectors; ++g) {
    score[g] = Load(scores + g * 16);
  }
  const Lanes largest = Max(Max(score[0], score[1]), Max(score[2], score[3]));
  const Lanes shift = Set1(TakeMax(LargestLane(largest), state));
  Lanes sum = Load(state.lanes);
#pragma GCC unroll 16
  for (int g = 0; g < kVectors; ++g) {
    const Lanes p = Exp(Load(scores + g * 16) - shift);
    Store(p, scores + g * 16);
    sum = sum + p;
  }
  Store(sum, state.lanes);
}

// The same for positions [begin, end). Other places hold anything before and
// after.
inline void TakeSomeScores(float* scores, int64_t begin, int64_t end,
                           const SoftmaxState& state) {
  const int64_t first = begin / 16 * 16;
  const Lanes lowest = Set1(-kInfinity);
  Lanes largest = lowest;
  for (int64_t j = first; j < end; j += 16) {
    largest =
        Max(KeepRange(Load(scores + j), begin - j, end - j, lowest), largest);
  }
  const Lanes shift = Set1(TakeMax(LargestLane(largest), state));
  Lanes sum = Load(state.lanes);
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
