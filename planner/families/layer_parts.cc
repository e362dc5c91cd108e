#include "planner/families/layer_parts.h"

#include "absl/strings/str_cat.h"
#include "model/checkpoint/decoder_config.h"

namespace millrace::planner {

void AddGatedFfn(SheetBuilder& builder, PartSheet& part,
                 const std::string& module, const FfnShape& shape) {
  const auto name = [&module](const char* leaf) {
    return absl::StrCat(module, ".", leaf);
  };
  builder.Linear(part, name(shape.names.gate), shape.width, shape.inputs);
  builder.Linear(part, name(shape.names.up), shape.width, shape.inputs);
  builder.Linear(part, name(shape.names.down), shape.inputs, shape.width);
}

void AddGroupedAttention(SheetBuilder& builder, LayerSheet& layer,
                         const std::string& module, const GroupedShape& shape) {
  const int64_t query_rows = shape.heads * shape.head_dim;
  const int64_t key_rows = shape.kv_heads * shape.head_dim;
  PartSheet& part = layer.weights;
  builder.Linear(part, module + ".q_proj", shape.query_parts * query_rows,
                 shape.hidden);
  builder.Linear(part, module + ".k_proj", key_rows, shape.hidden);
  builder.Linear(part, module + ".v_proj", key_rows, shape.hidden);
  builder.Linear(part, absl::StrCat(module, ".", shape.output), shape.hidden,
                 query_rows);
  if (shape.head_norms) {
    builder.Vector(part, shape.head_dim);
    builder.Vector(part, shape.head_dim);
  }
  layer.kv.push_back({2 * shape.kv_heads, shape.head_dim});
}

LatentShape ReadLatentShape(ConfigReader& config, int64_t hidden) {
  LatentShape out;
  out.hidden = hidden;
  out.heads = config.Need("num_attention_heads", model::kHeadsMax);
  out.query_rank = config.Or("q_lora_rank", 1, kRankMax, 0);
  out.kv_rank = config.Need("kv_lora_rank", kRankMax);
  out.nope_dim = config.Need("qk_nope_head_dim", model::kHeadDimMax);
  out.rope_dim = config.Need("qk_rope_head_dim", model::kHeadDimMax);
  out.value_dim = config.Need("v_head_dim", model::kHeadDimMax);
  return out;
}

void AddLatentAttention(SheetBuilder& builder, LayerSheet& layer,
                        const std::string& module, const LatentShape& shape) {
  PartSheet& part = layer.weights;
  const int64_t query_rows = shape.heads * (shape.nope_dim + shape.rope_dim);
  const int64_t value_rows = shape.heads * shape.value_dim;
  if (shape.query_rank > 0) {
    builder.Linear(part, module + ".q_a_proj", shape.query_rank, shape.hidden);
    builder.Vector(part, shape.query_rank);
    builder.Linear(part, module + ".q_b_proj", query_rows, shape.query_rank);
  } else {
    builder.Linear(part, module + ".q_proj", query_rows, shape.hidden);
  }
  builder.Linear(part, module + ".kv_a_proj_with_mqa",
                 shape.kv_rank + shape.rope_dim, shape.hidden);
  builder.Vector(part, shape.kv_rank);
  builder.Linear(part, module + ".kv_b_proj",
                 shape.heads * (shape.nope_dim + shape.value_dim),
                 shape.kv_rank);
  if (shape.output_gate) {
    builder.Linear(part, module + ".g_proj", value_rows, shape.hidden);
  }
  builder.Linear(part, module + ".o_proj", shape.hidden, value_rows);
  layer.kv.push_back({1, shape.kv_rank});
  layer.kv.push_back({1, shape.rope_dim});
}

DeltaShape ReadDeltaShape(ConfigReader& config, int64_t hidden) {
  const JsonObject section = config.Section("linear_attn_config");
  DeltaShape out;
  out.hidden = hidden;
  out.heads = config.NeedIn(section, "num_heads", model::kHeadsMax);
  out.head_dim = config.NeedIn(section, "head_dim", model::kHeadDimMax);
  out.taps = config.NeedIn(section, "short_conv_kernel_size", kTapsMax);
  return out;
}

void AddDeltaAttention(SheetBuilder& builder, LayerSheet& layer,
                       const std::string& module, const DeltaShape& shape) {
  PartSheet& part = layer.weights;
  const int64_t rows = shape.heads * shape.head_dim;
  for (const char* name : {".q_proj", ".k_proj", ".v_proj"}) {
    builder.Linear(part, module + name, rows, shape.hidden);
    builder.F32Vector(part, rows * shape.taps);  // its convolution
  }
  builder.Linear(part, module + ".f_a_proj", shape.head_dim, shape.hidden);
  builder.Linear(part, module + ".f_b_proj", rows, shape.head_dim);
  if (shape.full_rank_gate) {
    builder.Linear(part, module + ".g_proj", rows, shape.hidden);
  } else {
    builder.Linear(part, module + ".g_a_proj", shape.head_dim, shape.hidden);
    builder.Linear(part, module + ".g_b_proj", rows, shape.head_dim);
  }
  builder.Linear(part, module + ".b_proj", shape.heads, shape.hidden);
  builder.F32Vector(part, shape.heads);     // A_log
  builder.F32Vector(part, rows);            // dt_bias
  builder.F32Vector(part, shape.head_dim);  // o_norm
  builder.Linear(part, module + ".o_proj", shape.hidden, rows);
  layer.recurrent_values = rows * shape.head_dim;
  layer.convolution_values = (shape.taps - 1) * 3 * rows;
}

void AddEnds(SheetBuilder& builder, ModelSheet& sheet,
             const std::string& embedding, const std::string& head) {
  builder.Linear(sheet.first, embedding, sheet.vocab_size, sheet.hidden_size);
  builder.Linear(sheet.last, sheet.head_is_embedding ? embedding : head,
                 sheet.vocab_size, sheet.hidden_size);
  builder.Vector(sheet.last, sheet.hidden_size);
}

}  // namespace millrace::planner
