#include "planner/model_sheet.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "kernels/quant/tile.h"
#include "model/spec/stage_memory.h"

namespace millrace::planner {
namespace {

constexpr int64_t kF32Bytes = 4;
// A stage aligns what it allocates to this.
constexpr int64_t kAlignment = 64;

// More than any machine or cluster has, and small enough that sums over layers,
// sequences and nodes stay below 2^63.
constexpr double kModelBytesMax = 1e17;
constexpr double kKvBytesPerTokenMax = 1e9;
constexpr double kStateBytesMax = 1e12;

double AsDouble(int64_t value) { return static_cast<double>(value); }

int64_t TileBytes(const SheetMatrix& matrix) {
  return kernels::NumTiles(matrix.rows) *
         kernels::TileBytes(matrix.format, matrix.cols);
}

// By format, elements that one token multiplies.
using FormatTally = std::map<kernels::WeightFormat, double>;

void Count(const PartSheet& part, double times, FormatTally& tally) {
  for (const SheetMatrix& matrix : part.matrices) {
    // Routers are exact in every mode and no measure of a node's rate.
    if (matrix.may_requantise) {
      tally[matrix.format] +=
          times * AsDouble(matrix.rows) * AsDouble(matrix.cols);
    }
  }
}

const char* MostUsed(const FormatTally& tally) {
  const auto most = std::max_element(
      tally.begin(), tally.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == tally.end() ? "" : kernels::TraitsOf(most->first).name;
}

LayerCost LayerOf(const LayerSheet& layer, const CostsShape& shape) {
  const PartTotals weights = TotalsOf(layer.weights);
  const PartTotals expert = TotalsOf(layer.expert);
  LayerCost out;
  out.kind = layer.kind;
  out.weights_bytes = weights.weights_bytes +
                      TotalsOf(layer.tables).weights_bytes +
                      layer.experts * expert.weights_bytes;
  out.kv_per_token = KvBytesPerToken(layer, shape.kv);
  out.kv_positions_max = KvPositionsMax(layer.window, shape.prefill_chunk);
  out.state_per_sequence = StateBytes(layer);
  const double used = AsDouble(layer.experts_used);
  out.flops_per_token = weights.operations + used * expert.operations;
  out.bytes_per_token = weights.read_bytes + used * expert.read_bytes;
  out.experts = {layer.experts, layer.experts_used,
                 layer.experts > 0 ? AsDouble(expert.weights_bytes) : 0};
  out.vectors = layer.vectors;
  FormatTally tally;
  Count(layer.weights, 1, tally);
  Count(layer.expert, used, tally);
  out.format = MostUsed(tally);
  return out;
}

// Bytes of a part as a number that cannot overflow, at most 4 B an element and
// a padded tile.
double BytesAtMost(const PartSheet& part) {
  double bytes = 0;
  for (const SheetMatrix& matrix : part.matrices) {
    bytes += (AsDouble(matrix.rows) + kernels::kTileRows) *
             (AsDouble(matrix.cols) + kAlignment) * kF32Bytes;
  }
  for (const SheetVector& vector : part.vectors) {
    bytes += AsDouble(vector.size) * kF32Bytes + kAlignment;
  }
  return bytes;
}

}  // namespace

PartTotals TotalsOf(const PartSheet& part) {
  PartTotals totals;
  for (const SheetMatrix& matrix : part.matrices) {
    const int64_t tiles = TileBytes(matrix);
    totals.parameters += matrix.rows * matrix.cols;
    totals.stored_bytes += matrix.stored_bytes;
    totals.weights_bytes += tiles;
    totals.read_bytes += AsDouble(tiles);
    totals.operations += 2 * AsDouble(matrix.rows) * AsDouble(matrix.cols);
  }
  for (const SheetVector& vector : part.vectors) {
    const int64_t bytes = vector.size * kF32Bytes;
    totals.parameters += vector.size;
    totals.stored_bytes += vector.stored_bytes;
    totals.weights_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    totals.read_bytes += AsDouble(bytes);
  }
  return totals;
}

int64_t KvBytesPerToken(const LayerSheet& layer, const model::KvFormat& kv) {
  int64_t bytes = 0;
  for (const KvRows& rows : layer.kv) {
    bytes += rows.rows * model::KvHeadBytes(kv, rows.dims);
  }
  return bytes;
}

int64_t StateBytes(const LayerSheet& layer) {
  return (layer.recurrent_values + layer.convolution_values) * kF32Bytes;
}

SheetTotals TotalsOf(const ModelSheet& sheet, const model::KvFormat& kv) {
  SheetTotals out;
  const auto add = [&out](const PartTotals& part, int64_t times) {
    out.parameters += times * part.parameters;
    out.stored_bytes += times * part.stored_bytes;
    out.weights_bytes += times * part.weights_bytes;
  };
  double operations = 0;
  for (const LayerSheet& layer : sheet.layers) {
    const PartTotals weights = TotalsOf(layer.weights);
    const PartTotals expert = TotalsOf(layer.expert);
    add(weights, 1);
    add(TotalsOf(layer.tables), 1);
    add(expert, layer.experts);
    operations +=
        weights.operations + AsDouble(layer.experts_used) * expert.operations;
    (layer.window > 0 ? out.window_bytes_per_token : out.kv_bytes_per_token) +=
        KvBytesPerToken(layer, kv);
    out.recurrent_bytes += layer.recurrent_values * kF32Bytes;
    out.convolution_bytes += layer.convolution_values * kF32Bytes;
  }
  add(TotalsOf(sheet.first), 1);
  const PartTotals last = TotalsOf(sheet.last);
  add(last, 1);
  operations += last.operations;
  if (sheet.head_is_embedding) {
    const SheetMatrix& head = sheet.last.matrices.front();
    out.parameters -= head.rows * head.cols;
    out.stored_bytes -= head.stored_bytes;
    out.weights_bytes -= TileBytes(head);
  }
  out.parameters_active = static_cast<int64_t>(operations / 2);
  return out;
}

ModelCosts CostsOfSheet(const ModelSheet& sheet, const CostsShape& shape) {
  ModelCosts out;
  out.name = sheet.name;
  out.digest = sheet.digest;
  // Between layers the residual stream is f32.
  out.hidden_bytes = sheet.hidden_size * kF32Bytes;
  for (const LayerSheet& layer : sheet.layers) {
    out.layers.push_back(LayerOf(layer, shape));
  }
  out.first.weights_bytes = TotalsOf(sheet.first).weights_bytes;
  const PartTotals last = TotalsOf(sheet.last);
  out.last = {last.weights_bytes, last.read_bytes, last.operations};
  out.shared_weights_bytes =
      sheet.head_is_embedding ? TileBytes(sheet.last.matrices.front()) : 0;
  out.kv_block_positions = model::kKvBlockPositions;
  return out;
}

absl::Status CheckSheet(const ModelSheet& sheet, absl::string_view object) {
  double bytes = BytesAtMost(sheet.first) + BytesAtMost(sheet.last);
  double kv = 0;
  double state = 0;
  for (const LayerSheet& layer : sheet.layers) {
    bytes += BytesAtMost(layer.weights) + BytesAtMost(layer.tables) +
             AsDouble(layer.experts) * BytesAtMost(layer.expert);
    for (const KvRows& rows : layer.kv) {
      kv += AsDouble(rows.rows) * AsDouble(rows.dims) * kF32Bytes;
    }
    state += (AsDouble(layer.recurrent_values) +
              AsDouble(layer.convolution_values)) *
             kF32Bytes;
  }
  const char* what = bytes > kModelBytesMax     ? "weights"
                     : kv > kKvBytesPerTokenMax ? "KV of one token"
                     : state > kStateBytesMax   ? "state of one sequence"
                                                : nullptr;
  if (what == nullptr) {
    return absl::OkStatus();
  }
  return InputError(
      object,
      absl::StrCat("describes a model whose ", what,
                   " would be larger than any machine's memory; its sizes are "
                   "not those of a model"),
      "use the config.json that the model was published with");
}

}  // namespace millrace::planner
