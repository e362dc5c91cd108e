#include "stage-worker/layers/products.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/quant/tile.h"

namespace millrace::worker {
namespace {

using kernels::ActivationForm;

// A claim of a chunk drains the loads in flight: chunks of 256 KiB of weights
// and more (kernels/README.md), unless that leaves threads without work.
constexpr int64_t kChunkBytes = 256 << 10;
constexpr int64_t kChunksPerThread = 2;

// Many tokens: every chunk reads all packed activations, which come from far
// away and should serve as many tiles as the balance of the threads allows.
constexpr int64_t kManyTokens = 64;
constexpr int64_t kLongChunksPerThread = 8;
// Kernels take up to so many tiles side by side.
constexpr int64_t kSideTiles = 4;

int64_t TileBytesOf(const LoadedMatrix& weight) {
  return kernels::TileBytes(weight.format, weight.cols);
}

// Where the inputs stand packed, and what packing is left to do.
struct Packing {
  struct Piece {
    kernels::PackActivationsArgs args;
    ActivationForm form;
    int64_t first_panel;  // among the panels of all pieces
  };
  Piece pieces[kProductsMax];
  size_t num_pieces = 0;
  int64_t num_panels = 0;
  int64_t used[kernels::kNumActivationForms] = {};  // bytes of each buffer
};

// The tiles of all products laid end to end and cut into chunks.
struct Schedule {
  kernels::MatMulArgs args[kProductsMax];
  kernels::MatMulFn functions[kProductsMax];
  int64_t tiles_per_chunk[kProductsMax];
  int64_t first_chunk[kProductsMax + 1];
  size_t num = 0;
};

// Plans the packing of one input in one form; returns where it will stand.
const std::byte* AddPiece(const StepContext& step, const ProductInput& input,
                          int64_t cols, ActivationForm form, Packing& packing) {
  MILLRACE_DCHECK(packing.num_pieces < kProductsMax);
  const auto index = static_cast<size_t>(form);
  std::byte* packed = step.buffers.packed[index] + packing.used[index];
  packing.used[index] +=
      kernels::PackedActivationBytes(form, input.num_tokens, cols);
  MILLRACE_DCHECK(packing.used[index] <= step.packed_bytes);
  packing.pieces[packing.num_pieces++] = {
      .args = {.x = input.x,
               .x_stride = input.x_stride,
               .row_index = input.row_index,
               .num_tokens = input.num_tokens,
               .cols = cols,
               .packed = packed},
      .form = form,
      .first_panel = packing.num_panels};
  packing.num_panels += kernels::NumPanels(input.num_tokens);
  return packed;
}

void Pack(StepContext& step, const Packing& packing) {
  ForRanges(step, packing.num_panels, 2, [&](int64_t begin, int64_t end, int) {
    for (size_t i = 0; i < packing.num_pieces; ++i) {
      const Packing::Piece& piece = packing.pieces[i];
      const int64_t panels = kernels::NumPanels(piece.args.num_tokens);
      const int64_t from = std::max<int64_t>(begin - piece.first_panel, 0);
      const int64_t to = std::min(end - piece.first_panel, panels);
      if (from < to) {
        step.kernels->pack_activations[static_cast<size_t>(piece.form)](
            piece.args, from, to);
      }
    }
  });
}

// Adds the products of a group. `packed`: where its input stands in each form,
// null where it is not planned yet.
void AddGroup(const StepContext& step, const ProductGroup& group,
              kernels::ComputeMode compute,
              const std::byte* packed[kernels::kNumActivationForms],
              Packing& packing, Schedule& schedule) {
  for (const Product& product : group.products) {
    MILLRACE_DCHECK(schedule.num < kProductsMax);
    const LoadedMatrix& weight = *product.weight;
    const ActivationForm form =
        kernels::ActivationFormFor(compute, weight.format);
    const std::byte*& input = packed[static_cast<size_t>(form)];
    if (input == nullptr) {
      input = AddPiece(step, group.input, weight.cols, form, packing);
    }
    schedule.args[schedule.num] = {.tiles = weight.tiles,
                                   .rows = weight.rows,
                                   .cols = weight.cols,
                                   .packed = input,
                                   .num_tokens = group.input.num_tokens,
                                   .bias = product.bias,
                                   .y = product.y,
                                   .y_stride = product.y_stride};
    schedule.functions[schedule.num] =
        step.kernels->matmul[static_cast<size_t>(compute)]
                            [static_cast<size_t>(weight.format)];
    ++schedule.num;
  }
}

int64_t TilesOfChunk(int64_t fitting) {
  return fitting > kSideTiles ? fitting / kSideTiles * kSideTiles
                              : std::max<int64_t>(1, fitting);
}

// Cuts the products into chunks; returns their number.
int64_t CutChunks(std::span<const ProductGroup> groups, int num_threads,
                  Schedule& schedule) {
  int64_t bytes = 0;
  for (const ProductGroup& group : groups) {
    for (const Product& product : group.products) {
      bytes += kernels::NumTiles(product.weight->rows) *
               TileBytesOf(*product.weight);
    }
  }
  const int64_t few =
      std::min(kChunkBytes, bytes / (kChunksPerThread * num_threads));
  const int64_t many =
      std::max(few, bytes / (kLongChunksPerThread * num_threads));
  size_t index = 0;
  schedule.first_chunk[0] = 0;
  for (const ProductGroup& group : groups) {
    for (const Product& product : group.products) {
      const int64_t tile_bytes =
          std::max<int64_t>(TileBytesOf(*product.weight), 1);
      const int64_t chunk_bytes =
          group.input.num_tokens >= kManyTokens ? many : few;
      const int64_t size = TilesOfChunk(chunk_bytes / tile_bytes);
      const int64_t tiles = kernels::NumTiles(product.weight->rows);
      schedule.tiles_per_chunk[index] = size;
      schedule.first_chunk[index + 1] =
          schedule.first_chunk[index] + (tiles + size - 1) / size;
      ++index;
    }
  }
  return schedule.first_chunk[index];
}

void RunChunk(const Schedule& schedule, int64_t chunk) {
  const int64_t* const after = std::upper_bound(
      schedule.first_chunk + 1, schedule.first_chunk + schedule.num, chunk);
  const auto index = static_cast<size_t>(after - schedule.first_chunk) - 1;
  const int64_t size = schedule.tiles_per_chunk[index];
  const int64_t begin = (chunk - schedule.first_chunk[index]) * size;
  const kernels::MatMulArgs& args = schedule.args[index];
  schedule.functions[index](
      args, begin, std::min(begin + size, kernels::NumTiles(args.rows)));
}

}  // namespace

void MultiplyGroups(StepContext& step, std::span<const ProductGroup> groups,
                    kernels::ComputeMode compute) {
  MILLRACE_DCHECK(groups.size() <= kProductGroupsMax);
  Packing packing;
  Schedule schedule;
  const std::byte* packed[kernels::kNumActivationForms] = {};
  for (size_t i = 0; i < groups.size(); ++i) {
    MILLRACE_DCHECK(groups[i].input.num_tokens > 0);
    if (i > 0 && groups[i].input != groups[i - 1].input) {
      std::fill(std::begin(packed), std::end(packed), nullptr);
    }
    AddGroup(step, groups[i], compute, packed, packing, schedule);
  }
  Pack(step, packing);
  const int64_t chunks = CutChunks(groups, step.pool->num_threads(), schedule);
  step.pool->Run(chunks,
                 [&](int64_t chunk, int) { RunChunk(schedule, chunk); });
}

void Multiply(StepContext& step, const ProductInput& input,
              std::span<const Product> products, kernels::ComputeMode compute) {
  if (input.num_tokens == 0) {
    return;
  }
  const ProductGroup group = {input, products};
  MultiplyGroups(step, {&group, 1}, compute);
}

}  // namespace millrace::worker
