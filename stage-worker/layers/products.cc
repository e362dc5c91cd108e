#include "stage-worker/layers/products.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/quant/tile.h"

namespace millrace::worker {
namespace {

// A claim of a chunk drains the loads in flight: chunks of 256 KiB of weights
// and more (kernels/README.md).
constexpr int64_t kChunkBytes = 256 << 10;

// Tiles of each product laid end to end and cut into chunks.
struct Schedule {
  int64_t tiles_per_chunk[kProductsMax];
  int64_t first_chunk[kProductsMax + 1];
};

Schedule MakeSchedule(std::span<const Product> products, int num_threads) {
  Schedule schedule;
  schedule.first_chunk[0] = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    const LoadedMatrix& weight = *products[i].weight;
    const int64_t tiles = kernels::NumTiles(weight.rows);
    const int64_t tile_bytes = kernels::TileBytes(weight.format, weight.cols);
    // Small matrices: at least two chunks a thread, or one core does it all.
    const int64_t share = std::max<int64_t>(
        1, (tiles + int64_t{2} * num_threads - 1) / (int64_t{2} * num_threads));
    const int64_t size = std::min(
        share,
        std::max<int64_t>(1, kChunkBytes / std::max<int64_t>(1, tile_bytes)));
    schedule.tiles_per_chunk[i] = size;
    schedule.first_chunk[i + 1] =
        schedule.first_chunk[i] + (tiles + size - 1) / size;
  }
  return schedule;
}

void Pack(StepContext& step, const ProductInput& input, int64_t cols,
          kernels::ActivationForm form) {
  kernels::PackActivationsArgs args;
  args.x = input.x;
  args.x_stride = input.x_stride;
  args.row_index = input.row_index;
  args.num_tokens = input.num_tokens;
  args.cols = cols;
  args.packed = step.buffers.packed[static_cast<size_t>(form)];
  MILLRACE_DCHECK(
      kernels::PackedActivationBytes(form, input.num_tokens, cols) <=
      model::PackedRowsBytesMax(input.num_tokens, step.sizes.widest_input));
  const auto pack = step.kernels->pack_activations[static_cast<size_t>(form)];
  ForRanges(step, kernels::NumPanels(input.num_tokens), 2,
            [&](int64_t begin, int64_t end, int) { pack(args, begin, end); });
}

}  // namespace

void Multiply(StepContext& step, const ProductInput& input,
              std::span<const Product> products, kernels::ComputeMode compute) {
  MILLRACE_DCHECK(!products.empty() && products.size() <= kProductsMax);
  if (input.num_tokens == 0) {
    return;
  }
  kernels::MatMulArgs args[kProductsMax];
  kernels::MatMulFn functions[kProductsMax];
  bool packed[kernels::kNumActivationForms] = {};
  for (size_t i = 0; i < products.size(); ++i) {
    const LoadedMatrix& weight = *products[i].weight;
    const kernels::ActivationForm form =
        kernels::ActivationFormFor(compute, weight.format);
    if (!packed[static_cast<size_t>(form)]) {
      Pack(step, input, weight.cols, form);
      packed[static_cast<size_t>(form)] = true;
    }
    args[i] = {.tiles = weight.tiles,
               .rows = weight.rows,
               .cols = weight.cols,
               .packed = step.buffers.packed[static_cast<size_t>(form)],
               .num_tokens = input.num_tokens,
               .bias = products[i].bias,
               .y = products[i].y,
               .y_stride = products[i].y_stride};
    functions[i] = step.kernels->matmul[static_cast<size_t>(compute)]
                                       [static_cast<size_t>(weight.format)];
  }
  const Schedule schedule = MakeSchedule(products, step.pool->num_threads());
  step.pool->Run(schedule.first_chunk[products.size()], [&](int64_t chunk,
                                                            int) {
    size_t i = 0;
    while (chunk >= schedule.first_chunk[i + 1]) {
      ++i;
    }
    const int64_t begin =
        (chunk - schedule.first_chunk[i]) * schedule.tiles_per_chunk[i];
    const int64_t end = std::min(begin + schedule.tiles_per_chunk[i],
                                 kernels::NumTiles(products[i].weight->rows));
    functions[i](args[i], begin, end);
  });
}

}  // namespace millrace::worker
