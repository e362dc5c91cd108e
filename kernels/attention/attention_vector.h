#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_tile_vector.h"

namespace millrace::kernels {
namespace {

// Neighbouring rows of one sequence with one KV head: they share each walk over
// the keys and values.
struct AttentionTile {
  int64_t row_begin;
  int64_t row_end;
  int64_t kv_head;
  int64_t heads_per_kv;
  int64_t num_queries;  // rows * heads_per_kv, row major
};

// Positions of a block that a query sees: [begin, end), empty for none.
struct Visible {
  int64_t begin;
  int64_t end;
};

inline Visible VisibleIn(const AttentionRow& row, int64_t block) {
  const int64_t start = block * kPositions;
  const int64_t begin = row.first_visible - start;
  const int64_t end = row.position - start + 1;
  return {begin > 0 ? begin : 0, end < kPositions ? end : kPositions};
}

inline const AttentionRow& RowOf(const AttentionArgs& args,
                                 const AttentionTile& tile, int64_t query) {
  return args.rows[tile.row_begin + query / tile.heads_per_kv];
}

// Element [query][0] of q or out, whose rows are `stride` apart.
inline int64_t QueryOffset(const AttentionArgs& args, const AttentionTile& tile,
                           int64_t query, int64_t stride) {
  return (tile.row_begin + query / tile.heads_per_kv) * stride +
         (tile.kv_head * tile.heads_per_kv + query % tile.heads_per_kv) *
             args.head_dim;
}

// Scales the queries into groups and empties their state.
inline void StartQueries(const AttentionArgs& args, const AttentionTile& tile,
                         const AttentionScratch& at, float* scratch) {
  const int64_t dims = args.head_dim;
  const int64_t padded = (tile.num_queries + kAttentionGroup - 1) /
                         kAttentionGroup * kAttentionGroup;
  for (int64_t query = 0; query < padded; ++query) {
    float* to = scratch + at.q +
                query / kAttentionGroup * dims * kAttentionGroup +
                query % kAttentionGroup;
    const float* from =
        query < tile.num_queries
            ? args.q + QueryOffset(args, tile, query, args.q_stride)
            : nullptr;
    for (int64_t d = 0; d < dims; ++d) {
      to[d * kAttentionGroup] = from == nullptr ? 0.0f : from[d] * args.scale;
    }
    scratch[at.max + query] = -kInfinity;
    Store(Set1(0.0f), scratch + at.lanes + query * 16);
    for (int64_t d = 0; d < at.dims_padded; d += 16) {
      Store(Set1(0.0f), scratch + at.acc + query * at.dims_padded + d);
    }
  }
}

// One group of queries, the group_begin-th of the tile and up to
// kAttentionGroup, at one block.
struct GroupAtBlock {
  const AttentionTile* tile;
  const AttentionScratch* at;
  float* scratch;
  int64_t group_begin;
  int64_t num_queries;
  int64_t block;
  KeyBlock keys;
  ValueRun values;

  [[nodiscard]] const float* q() const {
    return scratch + at->q + group_begin * keys.dims;
  }
  [[nodiscard]] float* scores() const { return scratch + at->scores; }
  [[nodiscard]] SoftmaxState State(int64_t i) const {
    const int64_t query = group_begin + i;
    return {.max = scratch + at->max + query,
            .lanes = scratch + at->lanes + query * 16,
            .acc = scratch + at->acc + query * at->dims_padded,
            .acc_dims = at->dims_padded};
  }
};

// The tile's keys in a block of its sequence.
template <typename Kv>
const std::byte* KeysOf(const AttentionArgs& args, const AttentionTile& tile,
                        int64_t block) {
  const AttentionRow& row = args.rows[tile.row_begin];
  return args.pool + row.blocks[block % row.num_blocks] * args.block_bytes +
         tile.kv_head * 8 * KvTileBytes<Kv>(args.head_dim);
}

// All positions of the block.
template <typename Kv>
GroupAtBlock MakeGroup(const AttentionArgs& args, const AttentionTile& tile,
                       const AttentionScratch& at, float* scratch,
                       int64_t group_begin, int64_t block) {
  const int64_t left = tile.num_queries - group_begin;
  const std::byte* k = KeysOf<Kv>(args, tile, block);
  const std::byte* v = k + 4 * KvTileBytes<Kv>(args.head_dim);
  // The first group brings the values here while it reads the keys, and the
  // next keys while it reads the values.
  const bool leads = group_begin == 0;
  return {.tile = &tile,
          .at = &at,
          .scratch = scratch,
          .group_begin = group_begin,
          .num_queries = left < kAttentionGroup ? left : kAttentionGroup,
          .block = block,
          .keys = {.k = k,
                   .ahead = leads ? v : k,
                   .dims = args.head_dim,
                   .tile_begin = 0,
                   .tile_end = kPositions / 16},
          .values = {.v = v,
                     .ahead = leads ? KeysOf<Kv>(args, tile, block + 1) : v,
                     .dims = args.head_dim,
                     .p = scratch + at.scores,
                     .begin = 0,
                     .end = kPositions,
                     .acc = scratch + at.acc + group_begin * at.dims_padded,
                     .acc_stride = at.dims_padded}};
}

// A block of which every query of the group sees everything.
template <typename Kv>
void TakeWholeBlock(const GroupAtBlock& group) {
  ScoreGroup<Kv>(group.keys, group.q(), group.num_queries, group.scores());
  for (int64_t i = 0; i < group.num_queries; ++i) {
    TakeAllScores(group.scores() + i * kPositions, group.State(i));
  }
  ValueGroup<Kv>(group.values, group.num_queries);
}

// Values for the queries [first, last) of a group that see the positions
// [begin, end) together. Apart, or the compiler copies it to a dozen places.
template <typename Kv>
[[gnu::noinline]] void TakeRun(const ValueRun& run, int64_t first, int64_t last,
                               int64_t begin, int64_t end) {
  ValueRun part = run;
  part.p += first * kPositions;
  part.acc += first * run.acc_stride;
  part.begin = begin;
  part.end = end;
  ValueGroup<Kv>(part, last - first);
}

// Values for the queries [first, last) of a group, all of which see something
// of the block: alone up to where all see, together, and alone behind.
template <typename Kv>
void TakeValues(const ValueRun& run, const Visible* visible, int64_t first,
                int64_t last) {
  Visible common{0, kPositions};
  for (int64_t i = first; i < last; ++i) {
    common.begin =
        visible[i].begin > common.begin ? visible[i].begin : common.begin;
    common.end = visible[i].end < common.end ? visible[i].end : common.end;
  }
  const bool shared = common.begin < common.end;
  for (int64_t i = first; i < last; ++i) {
    const int64_t end = shared ? common.begin : visible[i].end;
    if (visible[i].begin < end) {
      TakeRun<Kv>(run, i, i + 1, visible[i].begin, end);
    }
  }
  if (!shared) {
    return;
  }
  TakeRun<Kv>(run, first, last, common.begin, common.end);
  for (int64_t i = first; i < last; ++i) {
    if (common.end < visible[i].end) {
      TakeRun<Kv>(run, i, i + 1, common.end, visible[i].end);
    }
  }
}

// A block of which the queries may see different parts, or none.
template <typename Kv>
void TakePartOfBlock(const AttentionArgs& args, GroupAtBlock group) {
  const int64_t num = group.num_queries;
  Visible visible[kAttentionGroup];
  Visible any{kPositions, 0};
  for (int64_t i = 0; i < num; ++i) {
    visible[i] =
        VisibleIn(RowOf(args, *group.tile, group.group_begin + i), group.block);
    if (visible[i].begin < visible[i].end) {
      any.begin = visible[i].begin < any.begin ? visible[i].begin : any.begin;
      any.end = visible[i].end > any.end ? visible[i].end : any.end;
    }
  }
  if (any.begin >= any.end) {
    return;
  }
  group.keys.tile_begin = any.begin / 16;
  group.keys.tile_end = (any.end + 15) / 16;
  ScoreGroup<Kv>(group.keys, group.q(), num, group.scores());
  for (int64_t i = 0; i < num;) {
    int64_t end = i;
    for (; end < num && visible[end].begin < visible[end].end; ++end) {
      TakeSomeScores(group.scores() + end * kPositions, visible[end].begin,
                     visible[end].end, group.State(end));
    }
    if (end > i) {
      TakeValues<Kv>(group.values, visible, i, end);
    }
    i = end > i ? end : i + 1;
  }
}

inline void FinishQueries(const AttentionArgs& args, const AttentionTile& tile,
                          const AttentionScratch& at, const float* scratch) {
  const int64_t dims = args.head_dim;
  for (int64_t query = 0; query < tile.num_queries; ++query) {
    const Lanes r = Set1(1.0f / TreeSum(Load(scratch + at.lanes + query * 16)));
    const float* acc = scratch + at.acc + query * at.dims_padded;
    float* out = args.out + QueryOffset(args, tile, query, args.out_stride);
    for (int64_t d = 0; d < dims; d += 16) {
      const int64_t n = dims - d < 16 ? dims - d : 16;
      StoreFirst(Load(acc + d) * r, out + d, n);
    }
  }
}

template <typename Kv>
void AttendTile(const AttentionArgs& args, const AttentionTile& tile,
                const AttentionScratch& at, float* scratch) {
  StartQueries(args, tile, at, scratch);
  // Positions that some row sees, and those that all rows see.
  const AttentionRow& row = args.rows[tile.row_begin];
  Visible any{row.first_visible, row.position + 1};
  Visible all = any;
  for (int64_t r = tile.row_begin + 1; r < tile.row_end; ++r) {
    const int64_t begin = args.rows[r].first_visible;
    const int64_t end = args.rows[r].position + 1;
    any.begin = begin < any.begin ? begin : any.begin;
    any.end = end > any.end ? end : any.end;
    all.begin = begin > all.begin ? begin : all.begin;
    all.end = end < all.end ? end : all.end;
  }
  for (int64_t start = any.begin / kPositions * kPositions; start < any.end;
       start += kPositions) {
    const bool whole = start >= all.begin && start + kPositions <= all.end;
    for (int64_t group_begin = 0; group_begin < tile.num_queries;
         group_begin += kAttentionGroup) {
      const GroupAtBlock group = MakeGroup<Kv>(args, tile, at, scratch,
                                               group_begin, start / kPositions);
      if (whole) {
        TakeWholeBlock<Kv>(group);
      } else {
        TakePartOfBlock<Kv>(args, group);
      }
    }
  }
  FinishQueries(args, tile, at, scratch);
}

// Rows of one sequence, as many as one tile may hold, from `row` on.
inline int64_t TileEnd(const AttentionArgs& args, int64_t row, int64_t limit,
                       int64_t rows_max) {
  const AttentionRow& first = args.rows[row];
  int64_t end = row + 1;
  while (end < limit && end - row < rows_max &&
         args.rows[end].blocks == first.blocks &&
         args.rows[end].num_blocks == first.num_blocks) {
    ++end;
  }
  return end;
}

template <typename Kv>
void Attention(const AttentionArgs& args, int64_t item_begin, int64_t item_end,
               std::byte* scratch_bytes) {
  auto* scratch = reinterpret_cast<float*>(scratch_bytes);
  const int64_t num_kv = args.num_kv_heads;
  const int64_t heads_per_kv = args.num_heads / num_kv;
  const AttentionScratch at = MakeAttentionScratch(heads_per_kv, args.head_dim);
  const int64_t rows_max = at.queries_max / heads_per_kv;
  for (int64_t kv_head = 0; kv_head < num_kv; ++kv_head) {
    // Rows whose item for this head lies in the range.
    int64_t row = (item_begin - kv_head + num_kv - 1) / num_kv;
    const int64_t row_end = (item_end - kv_head + num_kv - 1) / num_kv;
    while (row < row_end) {
      const int64_t end = TileEnd(args, row, row_end, rows_max);
      AttendTile<Kv>(args,
                     {.row_begin = row,
                      .row_end = end,
                      .kv_head = kv_head,
                      .heads_per_kv = heads_per_kv,
                      .num_queries = (end - row) * heads_per_kv},
                     at, scratch);
      row = end;
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
