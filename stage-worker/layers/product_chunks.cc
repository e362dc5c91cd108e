#include "stage-worker/layers/product_chunks.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/quant/tile.h"

namespace millrace::worker {
namespace {

// A claim of a chunk drains the loads in flight: chunks of 256 KiB of weights
// and more (kernels/README.md), unless that leaves threads without work.
constexpr int64_t kChunkBytes = 256 << 10;
constexpr int64_t kChunksPerThread = 2;

// Many tokens: activations take many times the bytes of the weights and come
// from far away. A thread goes through neighbouring chunks, all tiles for one
// block of tokens before the next, and a chunk has as many tiles as the balance
// of the threads allows.
constexpr int64_t kLongChunksPerThread = 8;

// Kernels take up to so many tiles side by side.
constexpr int64_t kSideTiles = 4;

// What a thread reads ahead: what memory delivers to it in some 20 us, and no
// more than second-level caches hold beside activations.
constexpr int64_t kReadAheadBytes = 256 << 10;

int64_t TileBytesOf(const LoadedMatrix& weight) {
  return kernels::TileBytes(weight.format, weight.cols);
}

// `fitting` would have the bytes of a chunk; `balanced` leave every thread
// enough chunks. Fewer than kernels take side by side only where there are few:
// of long rows a chunk may have one, which has nothing to hide latency behind.
int64_t TilesOfChunk(int64_t fitting, int64_t balanced) {
  return fitting > kSideTiles
             ? fitting / kSideTiles * kSideTiles
             : std::max({int64_t{1}, fitting, std::min(kSideTiles, balanced)});
}

}  // namespace

void ProductChunks::Add(const LoadedMatrix& weight, int64_t num_tokens) {
  MILLRACE_DCHECK(num_ < kProductsMax);
  weights_[num_] = &weight;
  num_tokens_[num_] = num_tokens;
  num_blocks_[num_] = TokenBlocks(num_tokens).num_blocks();
  ++num_;
}

void ProductChunks::Cut(int num_threads) {
  int64_t bytes = 0;
  for (size_t i = 0; i < num_; ++i) {
    bytes += kernels::NumTiles(weights_[i]->rows) * TileBytesOf(*weights_[i]);
  }
  const int64_t few =
      std::min(kChunkBytes, bytes / (kChunksPerThread * num_threads));
  const int64_t share = bytes / (kLongChunksPerThread * num_threads);
  for (size_t i = 0; i < num_; ++i) {
    const int64_t tile_bytes = std::max<int64_t>(TileBytesOf(*weights_[i]), 1);
    const int64_t chunk_bytes = num_tokens_[i] < kManyTokens
                                    ? few
                                    : std::max(few, share * num_blocks_[i]);
    const int64_t tiles = kernels::NumTiles(weights_[i]->rows);
    const int64_t size = TilesOfChunk(chunk_bytes / tile_bytes,
                                      tiles / (kChunksPerThread * num_threads));
    tiles_per_chunk_[i] = size;
    first_chunk_[i + 1] =
        first_chunk_[i] + num_blocks_[i] * ((tiles + size - 1) / size);
  }
}

ProductChunks::Part ProductChunks::At(int64_t chunk) const {
  const int64_t* const after =
      std::upper_bound(first_chunk_ + 1, first_chunk_ + num_, chunk);
  const auto product = static_cast<size_t>(after - first_chunk_) - 1;
  const int64_t in_product = chunk - first_chunk_[product];
  const int64_t chunks = first_chunk_[product + 1] - first_chunk_[product];
  const int64_t of_block = chunks / num_blocks_[product];
  const int64_t size = tiles_per_chunk_[product];
  const int64_t begin = in_product % of_block * size;
  const int64_t tiles = kernels::NumTiles(weights_[product]->rows);
  return {.product = product,
          .block = in_product / of_block,
          .tile_begin = begin,
          .tile_end = std::min(begin + size, tiles)};
}

ReadAhead::Piece ProductChunks::WeightsOf(int64_t chunk) const {
  const Part part = At(chunk);
  const LoadedMatrix& weight = *weights_[part.product];
  const int64_t tile_bytes = TileBytesOf(weight);
  return {weight.tiles + part.tile_begin * tile_bytes,
          (part.tile_end - part.tile_begin) * tile_bytes};
}

void ProductChunks::ReadAheadBy(ThreadPool& pool) const {
  for (int thread = 0; thread < pool.num_threads(); ++thread) {
    ReadAhead::Piece pieces[ReadAhead::kPiecesMost];
    size_t num = 0;
    int64_t bytes = 0;
    const int64_t end = pool.FirstChunkOf(thread + 1, num_chunks());
    for (int64_t chunk = pool.FirstChunkOf(thread, num_chunks());
         chunk < end && num < ReadAhead::kPiecesMost && bytes < kReadAheadBytes;
         ++chunk) {
      ReadAhead::Piece piece = WeightsOf(chunk);
      piece.bytes = std::min(piece.bytes, kReadAheadBytes - bytes);
      pieces[num++] = piece;
      bytes += piece.bytes;
    }
    pool.SetReadAhead(thread, {pieces, num});
  }
}

}  // namespace millrace::worker
