#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/compute_mode.h"

namespace millrace::kernels {

// One KV block holds 64 positions of one layer: for each KV head first K as
// [4][head_dim][16] (16 positions in the lanes), then V as [64][head_dim].
// kInt8 keeps behind each [head_dim][16] of K its scales, [groups][16] f32, and
// behind V its own, [64][groups], groups = ceil(head_dim / 32).
// Bytes of a block, a multiple of 64.
int64_t KvBlockBytes(KvType type, int64_t num_kv_heads, int64_t head_dim);

struct KvStoreArgs {
  const float* k;  // [num_kv_heads * head_dim], rotated
  const float* v;  // [num_kv_heads * head_dim]
  int64_t num_kv_heads;
  int64_t head_dim;
  std::byte* block;  // KvBlockBytes()
  int64_t position_in_block;
};
// Appends one position to a block. False when a finite value overflowed the
// stored type to infinity; everything is stored all the same. In kInt8 a NaN or
// infinity makes its group of 32 NaN.
using KvStoreFn = bool (*)(const KvStoreArgs& args);

// Where one query row finds its keys and values.
struct AttentionRow {
  // Block holding absolute positions [64 b, 64 b + 64) is
  // pool + blocks[b % num_blocks] * block_bytes.
  const int32_t* blocks;
  int64_t num_blocks;
  int64_t first_visible;  // first position this row may see, >= 0
  int64_t position;       // its own position, the last one it sees
};

struct AttentionArgs {
  const float* q;  // [num_rows, num_heads * head_dim], rotated, unscaled
  int64_t q_stride;
  float* out;  // [num_rows, num_heads * head_dim]; must not alias q
  int64_t out_stride;
  const AttentionRow* rows;  // [num_rows]
  int64_t num_rows;
  int64_t num_heads;
  int64_t num_kv_heads;  // divides num_heads
  int64_t head_dim;
  float scale;  // multiplied into q first
  // Blocks of this layer; 64-byte aligned for speed.
  const std::byte* pool;
  int64_t block_bytes;  // stride of the pool
};

// Scratch bytes one thread needs, a multiple of 64.
int64_t AttentionScratchBytes(int64_t num_heads, int64_t num_kv_heads,
                              int64_t head_dim);

// Computes the items [item_begin, item_end) of num_rows * num_kv_heads, item =
// row * num_kv_heads + kv head: all query heads of that KV head. Disjoint
// ranges may run concurrently, each with its own scratch (64-byte aligned).
// Consecutive rows of one sequence may share work inside a call; a row's result
// depends on its own history only.
using AttentionFn = void (*)(const AttentionArgs& args, int64_t item_begin,
                             int64_t item_end, std::byte* scratch);

}  // namespace millrace::kernels
