#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "stage-worker/layers/token_blocks.h"
#include "stage-worker/runtime/weights.h"

namespace millrace::worker {

// Products that one operation of the thread pool holds at most.
inline constexpr size_t kProductsMax = 64;

// The tiles of the products of one operation of the thread pool, once for each
// block of their tokens, laid end to end and cut into chunks. Step thread;
// nothing is allocated.
class ProductChunks {
 public:
  // Tiles of a product and a block of its tokens.
  struct Part {
    size_t product;
    int64_t block;
    int64_t tile_begin;
    int64_t tile_end;
  };

  // `weight` outlives this.
  void Add(const LoadedMatrix& weight, int64_t num_tokens);
  // Once all products are there.
  void Cut(int num_threads);

  [[nodiscard]] int64_t num_chunks() const { return first_chunk_[num_]; }
  [[nodiscard]] Part At(int64_t chunk) const;

  // Tells the threads of the pool to read ahead the weights with which they
  // will begin when these chunks are run by it.
  void ReadAheadBy(ThreadPool& pool) const;

 private:
  [[nodiscard]] ReadAhead::Piece WeightsOf(int64_t chunk) const;

  const LoadedMatrix* weights_[kProductsMax];
  int64_t num_tokens_[kProductsMax];
  int64_t num_blocks_[kProductsMax];
  int64_t tiles_per_chunk_[kProductsMax];
  int64_t first_chunk_[kProductsMax + 1] = {};
  size_t num_ = 0;
};

}  // namespace millrace::worker
