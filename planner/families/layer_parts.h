#pragma once

#include <cstdint>
#include <string>

#include "planner/families/sheet_builder.h"
#include "planner/model_sheet.h"

namespace millrace::planner {

// Parts that several families are made of; shapes as the model cards and
// reference implementations give them. `module` is the name of the part's
// module in a checkpoint, which quantisation rules refer to.

// down(act(gate x) * up x), with modules MODULE.gate_proj and so on.
struct FfnNames {
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
};
struct FfnShape {
  int64_t inputs = 0;
  int64_t width = 0;
  FfnNames names;
};
void AddGatedFfn(SheetBuilder& builder, PartSheet& part,
                 const std::string& module, const FfnShape& shape);

// Grouped-query attention with `key_rows` of keys and of values.
struct GroupedShape {
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  const char* output = "o_proj";
  bool head_norms = false;  // of queries and keys, per head
  // Rows of the query projection for each row of a query: 2 where it also
  // makes a gate.
  int64_t query_parts = 1;
};
void AddGroupedAttention(SheetBuilder& builder, LayerSheet& layer,
                         const std::string& module, const GroupedShape& shape);

// Multi-head latent attention (DeepSeek V2, section 2.1.2): one latent and one
// rotated key per position are all that the cache holds.
struct LatentShape {
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t query_rank = 0;  // 0: queries are projected at once
  int64_t kv_rank = 0;
  int64_t nope_dim = 0;
  int64_t rope_dim = 0;
  int64_t value_dim = 0;
  bool output_gate = false;
};
LatentShape ReadLatentShape(ConfigReader& config, int64_t hidden);
void AddLatentAttention(SheetBuilder& builder, LayerSheet& layer,
                        const std::string& module, const LatentShape& shape);

// Kimi Delta Attention (Kimi Linear report, section 3): per head a state of
// dim x dim in f32, and a short convolution before it.
struct DeltaShape {
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t taps = 0;
  bool full_rank_gate = false;  // else of the rank head_dim
};
DeltaShape ReadDeltaShape(ConfigReader& config, int64_t hidden);
void AddDeltaAttention(SheetBuilder& builder, LayerSheet& layer,
                       const std::string& module, const DeltaShape& shape);

// Embedding [vocab_size, hidden], final norm and head.
void AddEnds(SheetBuilder& builder, ModelSheet& sheet,
             const std::string& embedding, const std::string& head);

}  // namespace millrace::planner
