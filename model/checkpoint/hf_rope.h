#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "model/spec/model_spec.h"

namespace millrace::model {

struct HfRope {
  RopeSpec spec;
  int64_t context_length = 0;
};

// Rotary embedding of config.json: `rope_theta` with `rope_scaling`, or
// `rope_parameters`. `max_position` is max_position_embeddings. Unknown rules
// are refused by name.
absl::StatusOr<HfRope> ReadHfRope(const JsonObject& config, int64_t head_dim,
                                  int64_t max_position);

}  // namespace millrace::model
