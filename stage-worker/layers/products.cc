#include "stage-worker/layers/products.h"

#include <algorithm>

#include "base/check.h"
#include "stage-worker/layers/product_chunks.h"

namespace millrace::worker {
namespace {

using kernels::ActivationForm;

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

// All products and how they are cut into chunks.
struct Schedule {
  kernels::MatMulArgs args[kProductsMax];
  kernels::MatMulFn functions[kProductsMax];
  int64_t token_bytes[kProductsMax];  // of a packed token
  size_t num = 0;
  ProductChunks chunks;
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
  const TokenBlocks blocks(input.num_tokens);
  for (int64_t block = 0; block < blocks.num_blocks(); ++block) {
    packing.num_panels += kernels::NumPanels(blocks.TokensOf(block));
  }
  return packed;
}

// Packs what a piece has of the panels [begin, end) of all pieces.
void PackPiece(const kernels::KernelTable& table, const Packing::Piece& piece,
               int64_t begin, int64_t end) {
  const TokenBlocks blocks(piece.args.num_tokens);
  const int64_t token_bytes =
      kernels::PackedTokenBytes(piece.form, piece.args.cols);
  int64_t first = piece.first_panel;
  for (int64_t block = 0; block < blocks.num_blocks(); ++block) {
    kernels::PackActivationsArgs args = piece.args;
    const int64_t token = blocks.BeginOf(block);
    args.num_tokens = blocks.TokensOf(block);
    args.packed += token * token_bytes;
    if (args.row_index != nullptr) {
      args.row_index += token;
    } else {
      args.x += token * args.x_stride;
    }
    const int64_t panels = kernels::NumPanels(args.num_tokens);
    const int64_t from = std::max<int64_t>(begin - first, 0);
    const int64_t to = std::min(end - first, panels);
    if (from < to) {
      table.pack_activations[static_cast<size_t>(piece.form)](args, from, to);
    }
    first += panels;
  }
}

void Pack(StepContext& step, const Packing& packing) {
  ForRanges(step, packing.num_panels, 2, [&](int64_t begin, int64_t end, int) {
    for (size_t i = 0; i < packing.num_pieces; ++i) {
      PackPiece(*step.kernels, packing.pieces[i], begin, end);
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
    schedule.token_bytes[schedule.num] =
        kernels::PackedTokenBytes(form, weight.cols);
    ++schedule.num;
    schedule.chunks.Add(weight, group.input.num_tokens);
  }
}

// The threads read ahead what they begin with in `next`. Long inputs keep them
// busy with other things than waiting for weights.
void ReadAheadFor(StepContext& step, std::span<const ProductGroup> groups,
                  NextWeights next) {
  ProductChunks chunks;
  if (groups[0].input.num_tokens < kManyTokens) {
    for (const LoadedMatrix* weight : next) {
      chunks.Add(*weight, groups[0].input.num_tokens);
    }
  }
  chunks.Cut(step.pool->num_threads());
  chunks.ReadAheadBy(*step.pool);
}

void RunChunk(const Schedule& schedule, int64_t chunk) {
  const ProductChunks::Part part = schedule.chunks.At(chunk);
  kernels::MatMulArgs args = schedule.args[part.product];
  const TokenBlocks blocks(args.num_tokens);
  const int64_t token = blocks.BeginOf(part.block);
  args.num_tokens = blocks.TokensOf(part.block);
  args.packed += token * schedule.token_bytes[part.product];
  args.y += token * args.y_stride;
  schedule.functions[part.product](args, part.tile_begin, part.tile_end);
}

}  // namespace

void MultiplyGroups(StepContext& step, std::span<const ProductGroup> groups,
                    kernels::ComputeMode compute, NextWeights next) {
  MILLRACE_DCHECK(!groups.empty() && groups.size() <= kProductGroupsMax);
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
  schedule.chunks.Cut(step.pool->num_threads());
  ReadAheadFor(step, groups, next);
  step.pool->Run(schedule.chunks.num_chunks(), [&](int64_t chunk, int) {
    if (!step.is_cancelled()) {
      RunChunk(schedule, chunk);
    }
  });
}

void Multiply(StepContext& step, const ProductInput& input,
              std::span<const Product> products, kernels::ComputeMode compute,
              NextWeights next) {
  if (input.num_tokens == 0) {
    return;
  }
  const ProductGroup group = {input, products};
  MultiplyGroups(step, {&group, 1}, compute, next);
}

}  // namespace millrace::worker
