#include "stage-worker/layers/rope_tables.h"

#include <algorithm>
#include <variant>

#include "base/check.h"
#include "kernels/rope/rope.h"

namespace millrace::worker {
namespace {

bool IsDynamic(const model::RopeSpec& spec) {
  return spec.scaling == model::RopeScalingKind::kDynamic;
}

kernels::RopeScaling ScalingOf(model::RopeScalingKind kind) {
  switch (kind) {
    case model::RopeScalingKind::kNone:
      return kernels::RopeScaling::kNone;
    case model::RopeScalingKind::kLinear:
      return kernels::RopeScaling::kLinear;
    case model::RopeScalingKind::kDynamic:
      return kernels::RopeScaling::kDynamic;
    case model::RopeScalingKind::kLlama3:
      return kernels::RopeScaling::kLlama3;
    case model::RopeScalingKind::kYarn:
      return kernels::RopeScaling::kYarn;
  }
  return kernels::RopeScaling::kNone;
}

}  // namespace

RopeTables::RopeTables(const Weights& weights, int64_t num_slots) {
  for (const LoadedLayer& layer : weights.layers()) {
    for (const LoadedOperation& operation : layer.operations) {
      const auto* attention = std::get_if<LoadedAttention>(&operation);
      if (attention == nullptr || attention->rope == nullptr ||
          ColumnOf(attention->rope) >= 0) {
        continue;
      }
      Rotation rotation;
      rotation.spec = attention->rope;
      rotation.pairs = attention->rope->rotary_dims / 2;
      rotation.column = stride_;
      rotation.divisors = attention->rope_divisors;
      const bool dynamic = IsDynamic(*rotation.spec);
      rotation.frequencies.resize(
          static_cast<size_t>(rotation.pairs * (dynamic ? num_slots : 1)));
      if (!dynamic) {
        Frequencies(rotation, 0, rotation.frequencies.data());
      }
      stride_ += rotation.pairs;
      rotations_.push_back(std::move(rotation));
    }
  }
}

int64_t RopeTables::ColumnOf(const model::RopeSpec* rope) const {
  for (const Rotation& rotation : rotations_) {
    if (rotation.spec == rope || *rotation.spec == *rope) {
      return rotation.column;
    }
  }
  return -1;
}

void RopeTables::Frequencies(const Rotation& rotation, int64_t prompt_tokens,
                             double* out) {
  const model::RopeSpec& spec = *rotation.spec;
  kernels::RopeParams params;
  params.rotary_dims = spec.rotary_dims;
  params.theta = spec.theta;
  params.scaling = ScalingOf(spec.scaling);
  params.factor = spec.factor;
  params.low_freq_factor = spec.low_freq_factor;
  params.high_freq_factor = spec.high_freq_factor;
  params.original_context = spec.original_context;
  params.beta_fast = spec.beta_fast;
  params.beta_slow = spec.beta_slow;
  params.truncate = spec.truncate;
  params.attention_factor = spec.attention_factor;
  params.divisors = rotation.divisors;
  kernels::RopeFrequencies(params, prompt_tokens, out);
}

void RopeTables::Open(int64_t slot, int64_t prompt_tokens) {
  for (Rotation& rotation : rotations_) {
    if (IsDynamic(*rotation.spec)) {
      Frequencies(rotation, prompt_tokens,
                  rotation.frequencies.data() + slot * rotation.pairs);
    }
  }
}

void RopeTables::Fill(StepContext& step) {
  for (const Rotation& rotation : rotations_) {
    const bool dynamic = IsDynamic(*rotation.spec);
    ForRanges(step, step.num_rows(), 8, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const StepRow& row = step.rows[static_cast<size_t>(i)];
        const int64_t at = i * stride_ + rotation.column;
        kernels::RopeTableRow(rotation.frequencies.data() +
                                  (dynamic ? row.slot * rotation.pairs : 0),
                              rotation.pairs, rotation.spec->attention_factor,
                              row.position, step.buffers.rope_cos + at,
                              step.buffers.rope_sin + at);
      }
    });
  }
}

}  // namespace millrace::worker
