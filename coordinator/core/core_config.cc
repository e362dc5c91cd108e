#include "coordinator/core/core_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace millrace::coordinator {
namespace {

// Counts arrive from plans and options; beyond this sums of them could wrap.
constexpr int64_t kCountMax = int64_t{1} << 30;

absl::Status OutOfRange(absl::string_view field, int64_t value) {
  return UsageError(field, absl::StrCat(value, " is out of range"));
}

bool Within(int64_t value, int64_t low, int64_t high) {
  return value >= low && value <= high;
}

// A sequence takes the same slot on every stage.
int64_t FewestSlots(const std::vector<StagePool>& stages) {
  int64_t slots = stages.front().slots;
  for (const StagePool& stage : stages) {
    slots = std::min(slots, stage.slots);
  }
  return slots;
}

absl::Status ValidateStage(const StagePool& stage) {
  if (!Within(stage.full_blocks, 0, kCountMax)) {
    return OutOfRange(absl::StrCat(stage.name, ".full_blocks"),
                      stage.full_blocks);
  }
  if (!Within(stage.slots, 1, kCountMax)) {
    return OutOfRange(absl::StrCat(stage.name, ".slots"), stage.slots);
  }
  for (const WindowPool& window : stage.windows) {
    if (!Within(window.ring_blocks, 1, kCountMax)) {
      return OutOfRange(absl::StrCat(stage.name, ".ring_blocks"),
                        window.ring_blocks);
    }
    if (!Within(window.pool_blocks, 1, kCountMax)) {
      return OutOfRange(absl::StrCat(stage.name, ".pool_blocks"),
                        window.pool_blocks);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CoreConfig::Validate() const {
  if (stages.empty()) {
    return UsageError("stages", "a pipeline needs at least one");
  }
  for (const StagePool& stage : stages) {
    if (absl::Status status = ValidateStage(stage); !status.ok()) {
      return status;
    }
  }
  if (!Within(context, 1, kCountMax)) {
    return OutOfRange("context", context);
  }
  if (!Within(vocab_size, 1, kCountMax)) {
    return OutOfRange("vocab_size", vocab_size);
  }
  if (!Within(chunk, 1, kCountMax)) {
    return OutOfRange("chunk", chunk);
  }
  if (rows_max != 0 && !Within(rows_max, chunk + 1, kCountMax)) {
    return OutOfRange("rows_max", rows_max);
  }
  if (!Within(ops_max, 0, kCountMax) || ops_max == 1) {
    return OutOfRange("ops_max", ops_max);
  }
  if (!Within(microbatches, 0, 4096)) {
    return OutOfRange("microbatches", microbatches);
  }
  if (!Within(fixed_cost_rows, 1, kCountMax)) {
    return OutOfRange("fixed_cost_rows", fixed_cost_rows);
  }
  if (!Within(queue.requests_max, 0, kCountMax)) {
    return OutOfRange("queue.requests_max", queue.requests_max);
  }
  if (queue.tokens_max < 0) {
    return OutOfRange("queue.tokens_max", queue.tokens_max);
  }
  return absl::OkStatus();
}

CoreConfig CoreConfig::WithDefaults() const {
  CoreConfig full = *this;
  if (full.rows_max == 0) {
    full.rows_max = chunk + 256;
  }
  if (full.ops_max == 0) {
    full.ops_max = 2 * FewestSlots(stages);
  }
  if (full.microbatches == 0) {
    full.microbatches =
        DefaultMicrobatches(static_cast<int64_t>(stages.size()), true);
  }
  return full;
}

int64_t CoreConfig::Slots() const {
  int64_t slots = stages.front().slots;
  for (const StagePool& stage : stages) {
    slots = std::min(slots, stage.slots);
  }
  return slots;
}

transport::FrameLimits CoreConfig::LimitsOfFrames(int64_t hidden_size) const {
  const CoreConfig full = WithDefaults();
  return transport::FrameLimits{
      .slots = static_cast<uint32_t>(FewestSlots(stages)),
      .rows_max = static_cast<uint32_t>(full.rows_max),
      .columns = static_cast<uint32_t>(hidden_size),
      .positions_max = static_cast<uint32_t>(context),
      .vocab_size = static_cast<uint32_t>(vocab_size),
      .ops_max = static_cast<uint32_t>(full.ops_max)};
}

int64_t DefaultMicrobatches(int64_t num_stages, bool hops_exposed) {
  return num_stages > 1 && hops_exposed ? num_stages + 1 : num_stages;
}

}  // namespace millrace::coordinator
