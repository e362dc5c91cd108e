#include "stage-worker/layers/products.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "kernels/quant/tile.h"
#include "stage-worker/runtime/mapped_memory.h"

namespace millrace::worker {
namespace {

constexpr int64_t kRows = 64;
constexpr int64_t kCols = 32;
constexpr int64_t kTokens = 80;

// A matrix of ones, activations of ones, outputs of -1.
class ProductsTest : public ::testing::Test {
 protected:
  ProductsTest()
      : tile_bytes_(kernels::TileBytes(kernels::WeightFormat::kF32, kCols)),
        packed_bytes_(model::PackedRowsBytesMax(kTokens, kCols)),
        memory_(MappedMemory::Map(kernels::NumTiles(kRows) * tile_bytes_ +
                                  packed_bytes_)
                    .value()) {
    const std::vector<float> ones(kernels::kTileRows * kCols, 1.0f);
    Carver carver(memory_.data(), memory_.bytes());
    std::byte* const tiles =
        carver.Take(kernels::NumTiles(kRows) * tile_bytes_);
    for (int64_t tile = 0; tile < kernels::NumTiles(kRows); ++tile) {
      kernels::PackTile(kernels::WeightFormat::kF32,
                        reinterpret_cast<const std::byte*>(ones.data()),
                        kCols * 4, kernels::kTileRows, kCols,
                        tiles + tile * tile_bytes_);
    }
    weight_ = {kernels::WeightFormat::kF32, kRows, kCols, tiles};
    step_.kernels = &kernels_;
    step_.pool = &pool_;
    step_.packed_bytes = packed_bytes_;
    std::fill(std::begin(step_.buffers.packed), std::end(step_.buffers.packed),
              carver.Take(packed_bytes_));
  }

  void Run() {
    const ProductInput input = {.x = x_.data(),
                                .x_stride = kCols,
                                .row_index = nullptr,
                                .num_tokens = kTokens};
    const Product product = {
        .weight = &weight_, .bias = nullptr, .y = y_.data(), .y_stride = kRows};
    Multiply(step_, input, {&product, 1}, kernels::ComputeMode::kExact, {});
  }

  const int64_t tile_bytes_;
  const int64_t packed_bytes_;
  MappedMemory memory_;
  const kernels::KernelTable kernels_ =
      kernels::BuildKernelTable(kernels::Isa::kScalar);
  ThreadPool pool_{2};
  LoadedMatrix weight_;
  StepContext step_;
  std::vector<float> x_ = std::vector<float>(kTokens * kCols, 1.0f);
  std::vector<float> y_ = std::vector<float>(kTokens * kRows, -1.0f);
};

// A step that is cancelled computes nothing more: not even the product that was
// about to begin, which takes seconds where rows are many.
TEST_F(ProductsTest, ACancelledStepLeavesThemOut) {
  std::atomic<bool> cancelled{true};
  step_.cancelled = &cancelled;
  Run();
  EXPECT_EQ(y_, std::vector<float>(kTokens * kRows, -1.0f));
  cancelled = false;
  Run();
  EXPECT_EQ(y_, std::vector<float>(kTokens * kRows, float{kCols}));
}

}  // namespace
}  // namespace millrace::worker
