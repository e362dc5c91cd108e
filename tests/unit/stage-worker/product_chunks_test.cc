#include "stage-worker/layers/product_chunks.h"

#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/quant/tile.h"

namespace millrace::worker {
namespace {

using kernels::WeightFormat;

struct Product {
  LoadedMatrix weight;
  int64_t tokens;
};

std::vector<Product> RandomProducts(std::mt19937& random) {
  constexpr WeightFormat kFormats[] = {WeightFormat::kQ8_0, WeightFormat::kQ4_K,
                                       WeightFormat::kF32};
  std::vector<Product> products(1 + random() % 8);
  for (Product& product : products) {
    product.weight.format = kFormats[random() % 3];
    product.weight.rows = 1 + static_cast<int64_t>(random() % 3000);
    product.weight.cols = 256 * (1 + static_cast<int64_t>(random() % 16));
    product.tokens = random() % 2 == 0
                         ? 1 + static_cast<int64_t>(random() % 40)
                         : 1 + static_cast<int64_t>(random() % 1500);
  }
  return products;
}

// Every token meets every tile of its product in exactly one chunk; over random
// products of few and many tokens on several threads.
TEST(ProductChunks, CoverEveryTokenAndTileOnce) {
  std::mt19937 random(71);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<Product> products = RandomProducts(random);
    ProductChunks chunks;
    int64_t expected = 0;
    for (const Product& product : products) {
      chunks.Add(product.weight, product.tokens);
      expected += kernels::NumTiles(product.weight.rows) * product.tokens;
    }
    chunks.Cut(1 + static_cast<int>(random() % 8));
    int64_t met = 0;
    std::set<std::tuple<size_t, int64_t, int64_t>> seen;
    for (int64_t chunk = 0; chunk < chunks.num_chunks(); ++chunk) {
      const ProductChunks::Part part = chunks.At(chunk);
      ASSERT_LT(part.product, products.size());
      ASSERT_LT(part.tile_begin, part.tile_end);
      const Product& product = products[part.product];
      ASSERT_LE(part.tile_end, kernels::NumTiles(product.weight.rows));
      for (int64_t tile = part.tile_begin; tile < part.tile_end; ++tile) {
        ASSERT_TRUE(seen.insert({part.product, part.block, tile}).second);
        met += TokenBlocks(product.tokens).TokensOf(part.block);
      }
    }
    EXPECT_EQ(met, expected);
  }
}

// Blocks follow each other, begin where packed memory has whole lines, and are
// one for few tokens.
TEST(TokenBlocks, CoverAllTokensInOrder) {
  for (int64_t tokens = 1; tokens < 2000; ++tokens) {
    const TokenBlocks blocks(tokens);
    int64_t next = 0;
    for (int64_t block = 0; block < blocks.num_blocks(); ++block) {
      ASSERT_EQ(blocks.BeginOf(block), next);
      ASSERT_EQ(next % 16, 0);
      ASSERT_GT(blocks.TokensOf(block), 0);
      next += blocks.TokensOf(block);
    }
    ASSERT_EQ(next, tokens);
    if (tokens < kManyTokens) {
      ASSERT_EQ(blocks.num_blocks(), 1);
    }
  }
}

// Few tokens leave every thread work, and a claim is not too small where there
// is much of it.
TEST(ProductChunks, FewTokensCutBytesOfWeights) {
  constexpr int kThreads = 4;
  const LoadedMatrix small = {WeightFormat::kQ8_0, 64 * 16, 256, nullptr};
  ProductChunks chunks;
  chunks.Add(small, 1);
  chunks.Cut(kThreads);
  EXPECT_GE(chunks.num_chunks(), 2 * kThreads);

  const LoadedMatrix large = {WeightFormat::kQ8_0, 65536, 4096, nullptr};
  ProductChunks long_chunks;
  long_chunks.Add(large, 1);
  long_chunks.Cut(kThreads);
  const int64_t bytes =
      kernels::NumTiles(large.rows) * kernels::TileBytes(large.format, 4096);
  EXPECT_GE(bytes / long_chunks.num_chunks(), int64_t{128} << 10);
}

// Rows so long that the bytes of a chunk are one tile: kernels get as many side
// by side as they take, where every thread keeps enough chunks.
TEST(ProductChunks, LongRowsLeaveTilesSideBySide) {
  const auto tiles_of_chunk = [](int64_t rows, int num_threads) {
    const LoadedMatrix weight = {WeightFormat::kBf16, rows, 8192, nullptr};
    ProductChunks chunks;
    chunks.Add(weight, 1);
    chunks.Cut(num_threads);
    const ProductChunks::Part part = chunks.At(0);
    return part.tile_end - part.tile_begin;
  };
  EXPECT_EQ(tiles_of_chunk(2048, 2), 4);
  EXPECT_EQ(tiles_of_chunk(128, 2), 2);
  EXPECT_EQ(tiles_of_chunk(128, 8), 1);
}

}  // namespace
}  // namespace millrace::worker
