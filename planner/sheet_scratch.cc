#include "planner/sheet_scratch.h"

#include <algorithm>
#include <set>
#include <span>

#include "absl/numeric/int128.h"
#include "model/spec/stage_memory.h"

namespace millrace::planner {
namespace {

constexpr int64_t kF32Bytes = 4;
// q and attention output, k and v, gate and up.
constexpr int64_t kWideBuffers = 6;
// Hidden state and its norm.
constexpr int64_t kHiddenBuffers = 2;
// One packed copy for each form that a layer's products may mix.
constexpr int64_t kPackedCopies = 3;

struct Widths {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t experts = 0;
  int64_t experts_used = 0;
  int64_t vectors = 1;

  void Take(const PartSheet& part) {
    for (const SheetMatrix& matrix : part.matrices) {
      rows = std::max(rows, matrix.rows);
      cols = std::max(cols, matrix.cols);
    }
  }
  void Take(const LayerSheet& layer) {
    Take(layer.weights);
    Take(layer.expert);
    experts = std::max(experts, layer.experts);
    experts_used = std::max(experts_used, layer.experts_used);
    vectors = std::max(vectors, layer.vectors);
  }
};

int64_t RunBytes(const ModelSheet& sheet, const LayerRun& run,
                 const ScratchShape& shape) {
  const int64_t rows = shape.rows_max;
  Widths widths;
  for (int64_t i = run.begin; i < run.end; ++i) {
    widths.Take(sheet.layers[static_cast<size_t>(i)]);
  }
  model::ActivationSizes sizes;
  sizes.experts_per_token = widths.experts_used;
  const int64_t ffn_rows = model::FfnRowsMax(sizes, rows);
  const int64_t hidden = sheet.hidden_size;
  int64_t values = (kHiddenBuffers + widths.vectors - 1) * rows * hidden +
                   kWideBuffers * ffn_rows * widths.rows +
                   rows * (widths.experts + widths.experts_used * hidden);
  int64_t sampling = 0;
  if (run.end == static_cast<int64_t>(sheet.layers.size())) {
    model::ModelSpec ends;
    ends.vocab_size = sheet.vocab_size;
    model::StageShape stage;
    stage.rows_max = rows;
    values += model::LogitRowsMax(ends, stage) * sheet.vocab_size;
    sampling = model::kSampledTogether * model::SamplerBytes(sheet.vocab_size) +
               model::TokenHistoriesBytes(sheet.vocab_size, shape.context,
                                          shape.slots);
  }
  return values * kF32Bytes + sampling +
         kPackedCopies *
             model::PackedRowsBytesMax(ffn_rows, std::max(widths.cols, hidden));
}

// Copies of KV that layers of a node read and no layer of it keeps.
int64_t CopiedKvBytes(const ModelSheet& sheet, std::span<const LayerRun> runs,
                      const ScratchShape& shape) {
  std::set<int64_t> wanted;
  for (const LayerRun& run : runs) {
    for (int64_t i = run.begin; i < run.end; ++i) {
      const int64_t from = sheet.layers[static_cast<size_t>(i)].kv_from;
      const bool here =
          std::any_of(runs.begin(), runs.end(), [from](const LayerRun& held) {
            return held.begin <= from && from < held.end;
          });
      if (from >= 0 && !here) {
        wanted.insert(from);
      }
    }
  }
  constexpr int64_t kBlock = model::kKvBlockPositions;
  const int64_t all = (shape.context + kBlock - 1) / kBlock * kBlock;
  absl::int128 bytes = 0;
  for (const int64_t from : wanted) {
    const LayerSheet& layer = sheet.layers[static_cast<size_t>(from)];
    const int64_t most = KvPositionsMax(layer.window, shape.kept.prefill_chunk);
    bytes += absl::int128(shape.sequences) *
             (most > 0 ? std::min(most, all) : all) *
             KvBytesPerToken(layer, shape.kept.kv);
  }
  // More than any memory, and sums with it stay in range.
  constexpr int64_t kMost = int64_t{1} << 60;
  return bytes > kMost ? kMost : static_cast<int64_t>(bytes);
}

}  // namespace

ScratchFunction ScratchOfSheet(const ModelSheet& sheet,
                               const ScratchShape& shape) {
  return [&sheet, shape](std::span<const LayerRun> runs) {
    const auto layers = static_cast<int64_t>(sheet.layers.size());
    int64_t bytes =
        shape.process.Of(runs, layers) + CopiedKvBytes(sheet, runs, shape);
    for (const LayerRun& run : runs) {
      bytes += RunBytes(sheet, run, shape);
    }
    return bytes;
  };
}

}  // namespace millrace::planner
