#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/quant/weight_format.h"
#include "planner/costs.h"
#include "planner/spec_costs.h"

namespace millrace::planner {

// The weights of a model by shape and format, without names and places: what
// costs, and sizes in other formats, follow from. Made from a ModelSpec
// (spec_sheet.h) or from a configuration alone (families/), also of families
// that the engine does not run. Plain values.

// [rows = out features, cols = in features]
struct SheetMatrix {
  kernels::WeightFormat format = kernels::WeightFormat::kBf16;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stored_bytes = 0;  // in the checkpoint, with scales
  // Routers are not: quantising them changes which experts are chosen.
  bool may_requantise = true;
};

// Norms, biases, short convolutions: held as f32.
struct SheetVector {
  int64_t size = 0;
  int64_t stored_bytes = 0;
};

struct PartSheet {
  std::vector<SheetMatrix> matrices;
  std::vector<SheetVector> vectors;
};

// Bytes of keys, values or latents that one position keeps: `rows` rows of
// `dims` elements, each with its own scales in int8.
struct KvRows {
  int64_t rows = 0;
  int64_t dims = 0;
};

struct LayerSheet {
  std::string kind;     // for people, as model::KindOf()
  PartSheet weights;    // read for every token
  PartSheet tables;     // of which a token looks up one row
  int64_t experts = 0;  // routed ones, all of one shape
  int64_t experts_used = 0;
  PartSheet expert;        // one of them
  std::vector<KvRows> kv;  // empty: the layer keeps none of its own
  // The layer before it whose KV it reads in place of its own; -1: none.
  int64_t kv_from = -1;
  int64_t window = 0;  // 0: all positions
  // f32 values that a sequence keeps whatever its length: the state of linear
  // attention, and the inputs that a short convolution still needs.
  int64_t recurrent_values = 0;
  int64_t convolution_values = 0;
  // Vectors of hidden_size per token across a cut before the layer.
  int64_t vectors = 1;
};

struct ModelSheet {
  std::string name;
  std::string family;
  std::string digest;  // as ModelSpec::digest
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;
  int64_t context_length = 0;
  std::vector<LayerSheet> layers;
  PartSheet first;  // the embedding; looked up
  PartSheet last;   // final norm and, first of the matrices, the head
  bool head_is_embedding = false;
};

// Sums over a part.
struct PartTotals {
  int64_t parameters = 0;
  int64_t stored_bytes = 0;
  int64_t weights_bytes = 0;  // held by a stage: tiles, and vectors as f32
  double read_bytes = 0;      // by a token that multiplies all of it
  double operations = 0;      // multiplications and additions for one token
};
PartTotals TotalsOf(const PartSheet& part);

// Sums over the whole model; a tied head counts once.
struct SheetTotals {
  int64_t parameters = 0;
  int64_t parameters_active = 0;  // multiplied for a token: no look-ups
  int64_t stored_bytes = 0;
  int64_t weights_bytes = 0;
  int64_t kv_bytes_per_token = 0;      // of layers without a window
  int64_t window_bytes_per_token = 0;  // of layers with one
  int64_t recurrent_bytes = 0;         // per sequence
  int64_t convolution_bytes = 0;       // per sequence
};
SheetTotals TotalsOf(const ModelSheet& sheet, const model::KvFormat& kv);

// Bytes of one position in a layer.
int64_t KvBytesPerToken(const LayerSheet& layer, const model::KvFormat& kv);
// Bytes that a sequence keeps in a layer whatever its length.
int64_t StateBytes(const LayerSheet& layer);

// Costs per layer, by the same rules as CostsOfSpec().
ModelCosts CostsOfSheet(const ModelSheet& sheet, const CostsShape& shape);

// InputError naming `object` where sums over the model would not fit 64 bits:
// sizes that are each possible but not together. To be called before any sum.
[[nodiscard]] absl::Status CheckSheet(const ModelSheet& sheet,
                                      absl::string_view object);

}  // namespace millrace::planner
