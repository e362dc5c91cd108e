#include "stage-worker/runtime/stage_shape.h"

namespace millrace::worker {

model::StageShape ShapeOf(const StageConfig& config) {
  model::StageShape shape;
  shape.first_layer = config.first_layer;
  shape.last_layer = config.last_layer;
  shape.holds_embedding = config.holds_embedding;
  shape.holds_head = config.holds_head;
  shape.kv_element_bytes = config.kv_type == kernels::KvType::kF32 ? 4 : 2;
  shape.context = config.context;
  shape.sequences = config.sequences;
  shape.rows_max = config.rows_max;
  shape.prefill_chunk = config.prefill_chunk;
  return shape;
}

}  // namespace millrace::worker
