#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/kv_stores_scalar.h"
#include "kernels/ops_scalar.h"
#include "kernels/vector/elementary.h"

namespace millrace::kernels::scalar {
namespace {

template <typename Store>
bool KvStore(const KvStoreArgs& args) {
  const int64_t dims = args.head_dim;
  bool fits = true;
  for (int64_t head = 0; head < args.num_kv_heads; ++head) {
    fits &= Store::Append(args.k + head * dims, args.v + head * dims,
                          args.block + head * Store::HeadBytes(dims),
                          args.position_in_block, dims);
  }
  return fits;
}

// One query head of one row: the running state of the online softmax.
struct Query {
  const float* q;
  float* out;  // accumulates the values
  float max = -std::numeric_limits<float>::infinity();
  float lanes[16] = {};
};

// Takes the positions [begin, end) of one block in.
template <typename Store>
void AddBlock(const AttentionArgs& args, const std::byte* head, int64_t begin,
              int64_t end, Query& query) {
  const int64_t dims = args.head_dim;
  float scores[kKvBlockPositions];
  float max = query.max;
  for (int64_t j = begin; j < end; ++j) {
    float s = 0.0f;
    for (int64_t d = 0; d < dims; ++d) {
      s = std::fma(query.q[d] * args.scale, Store::Key(head, j, d, dims), s);
    }
    scores[j] = s;
    max = s > max ? s : max;
  }
  const float factor = max == query.max ? 1.0f : Exp(query.max - max);
  query.max = max;
  for (float& lane : query.lanes) {
    lane *= factor;
  }
  for (int64_t d = 0; d < dims; ++d) {
    query.out[d] *= factor;
  }
  for (int64_t j = begin; j < end; ++j) {
    const float p = Exp(scores[j] - max);
    query.lanes[j % 16] += p;
    for (int64_t d = 0; d < dims; ++d) {
      query.out[d] = std::fma(p, Store::Value(head, j, d, dims), query.out[d]);
    }
  }
}

template <typename Store>
void AttendOneHead(const AttentionArgs& args, int64_t row_index,
                   int64_t kv_head, int64_t query_head) {
  const AttentionRow& row = args.rows[row_index];
  const int64_t dims = args.head_dim;
  Query query;
  query.q = args.q + row_index * args.q_stride + query_head * dims;
  query.out = args.out + row_index * args.out_stride + query_head * dims;
  std::fill_n(query.out, dims, 0.0f);
  const int64_t head_bytes = Store::HeadBytes(dims);
  for (int64_t b = row.first_visible / kKvBlockPositions;
       b <= row.position / kKvBlockPositions; ++b) {
    const int64_t start = b * kKvBlockPositions;
    const int64_t begin = std::max(row.first_visible - start, int64_t{0});
    const int64_t end = std::min(row.position - start + 1,
                                 static_cast<int64_t>(kKvBlockPositions));
    const std::byte* block =
        args.pool + row.blocks[b % row.num_blocks] * args.block_bytes;
    AddBlock<Store>(args, block + kv_head * head_bytes, begin, end, query);
  }
  const float r = 1.0f / TreeSum(query.lanes);
  for (int64_t d = 0; d < dims; ++d) {
    query.out[d] = query.out[d] * r;
  }
}

template <typename Store>
void Attention(const AttentionArgs& args, int64_t item_begin,
               int64_t item_end) {
  const int64_t heads_per_kv = args.num_heads / args.num_kv_heads;
  for (int64_t item = item_begin; item < item_end; ++item) {
    const int64_t kv_head = item % args.num_kv_heads;
    for (int64_t g = 0; g < heads_per_kv; ++g) {
      AttendOneHead<Store>(args, item / args.num_kv_heads, kv_head,
                           kv_head * heads_per_kv + g);
    }
  }
}

}  // namespace

bool KvStoreF32(const KvStoreArgs& args) {
  return KvStore<PlainStore<CodecF32>>(args);
}
bool KvStoreF16(const KvStoreArgs& args) {
  return KvStore<PlainStore<CodecF16>>(args);
}
bool KvStoreBf16(const KvStoreArgs& args) {
  return KvStore<PlainStore<CodecBf16>>(args);
}
bool KvStoreInt8(const KvStoreArgs& args) { return KvStore<Int8Store>(args); }

void AttentionF32(const AttentionArgs& args, int64_t item_begin,
                  int64_t item_end, std::byte* /*scratch*/) {
  Attention<PlainStore<CodecF32>>(args, item_begin, item_end);
}
void AttentionF16(const AttentionArgs& args, int64_t item_begin,
                  int64_t item_end, std::byte* /*scratch*/) {
  Attention<PlainStore<CodecF16>>(args, item_begin, item_end);
}
void AttentionBf16(const AttentionArgs& args, int64_t item_begin,
                   int64_t item_end, std::byte* /*scratch*/) {
  Attention<PlainStore<CodecBf16>>(args, item_begin, item_end);
}
void AttentionInt8(const AttentionArgs& args, int64_t item_begin,
                   int64_t item_end, std::byte* /*scratch*/) {
  Attention<Int8Store>(args, item_begin, item_end);
}

}  // namespace millrace::kernels::scalar
