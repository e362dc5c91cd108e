#include "stage-worker/runtime/stage_shape.h"

namespace millrace::worker {
namespace {

model::KvFormat FormatOf(kernels::KvType type) {
  switch (type) {
    case kernels::KvType::kF32:
      return model::kKvF32;
    case kernels::KvType::kF16:
    case kernels::KvType::kBf16:
      return model::kKv16Bit;
    case kernels::KvType::kInt8:
      return model::kKvInt8;
  }
  return model::kKvF32;
}

}  // namespace

model::StageShape ShapeOf(const StageConfig& config) {
  model::StageShape shape;
  shape.first_layer = config.first_layer;
  shape.last_layer = config.last_layer;
  shape.holds_embedding = config.holds_embedding;
  shape.holds_head = config.holds_head;
  shape.kv = FormatOf(config.kv_type);
  shape.context = config.context;
  shape.sequences = config.sequences;
  shape.slots = config.slots;
  shape.rows_max = config.rows_max;
  shape.prefill_chunk = config.prefill_chunk;
  return shape;
}

}  // namespace millrace::worker
