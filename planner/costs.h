#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace millrace::planner {

// A model as numbers: what its layers weigh, keep and cost, whatever family
// they are of. Read from a cost file or made from a model's own files; a plan
// carries it, so that simulation and re-planning need the plan alone.

// The routed experts of a layer; a pass reads those that its rows choose.
struct ExpertCost {
  int64_t count = 0;      // 0: the layer has none; at most kExpertsMax
  int64_t used = 0;       // by one token, <= count
  double bytes_each = 0;  // weights of one expert

  bool operator==(const ExpertCost&) const = default;
};

struct LayerCost {
  std::string kind;  // a label: full, window, linear, moe ...
  int64_t weights_bytes = 0;
  int64_t kv_per_token = 0;  // bytes of one position
  // Positions kept at most (a sliding window and a prefill chunk); 0: all.
  int64_t kv_positions_max = 0;
  int64_t state_per_sequence = 0;  // bytes, whatever the length
  double flops_per_token = 0;
  // Read by a pass of one row, the experts of one token included; whole bytes.
  double bytes_per_token = 0;
  ExpertCost experts;
  // Vectors of hidden_bytes per token across a cut before this layer, >= 0.
  int64_t vectors = 1;
  // Weight format that most of the operations are done in, as `q8_0`: selects
  // a node's rate in `compute`; empty: the default one.
  std::string format;

  bool operator==(const LayerCost&) const = default;
};

// What stands with layer 0 (embedding) or with the last layer (head, sampling).
struct EndCost {
  int64_t weights_bytes = 0;
  double bytes_per_token = 0;
  double flops_per_token = 0;

  bool operator==(const EndCost&) const = default;
};

struct ModelCosts {
  std::string name;
  // Of the checkpoint that the costs were made from; empty: of a cost file.
  std::string digest;
  int64_t hidden_bytes = 0;  // one vector of one token across a cut
  std::vector<LayerCost> layers;
  EndCost first, last;
  // Weights of a tied head: counted once where one node holds both ends.
  int64_t shared_weights_bytes = 0;
  // Positions that KV is handed out by; 1: by the token.
  int64_t kv_block_positions = 1;

  bool operator==(const ModelCosts&) const = default;
};

inline constexpr int64_t kLayersMax = 100'000;
inline constexpr int64_t kExpertsMax = 65'536;
// Different pairs of `count` and `used`, and different formats, of one model:
// a planner keeps sums for each.
inline constexpr size_t kExpertClassesMax = 4;
inline constexpr size_t kFormatsMax = 32;

// Layers [begin, end).
struct LayerRun {
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const LayerRun&) const = default;
};

// Bytes that a node needs beside weights and sequences when it holds these
// runs, ascending and apart from each other. They need not add up over layers.
// An empty function: none.
using ScratchFunction = std::function<int64_t(std::span<const LayerRun>)>;

}  // namespace millrace::planner
