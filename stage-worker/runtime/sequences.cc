#include "stage-worker/runtime/sequences.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "stage-worker/runtime/stage_shape.h"

namespace millrace::worker {
namespace {

absl::Status Broken(int64_t slot, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("slot ", slot, ": ", what));
}

}  // namespace

Sequences::Sequences(const model::ModelSpec& spec, const StageConfig& config)
    : config_(config), states_(static_cast<size_t>(config.slots)) {
  for (const model::KvGroup& group : model::KvGroupsOf(spec, ShapeOf(config))) {
    pools_.emplace_back(group, config.slots);
  }
}

absl::Status Sequences::Apply(const std::vector<transport::SequenceOp>& ops,
                              RopeTables& ropes) {
  for (const transport::SequenceOp& op : ops) {
    if (const auto* open = std::get_if<transport::OpenSequence>(&op)) {
      MILLRACE_RETURN_IF_ERROR(Open(*open, ropes));
    } else {
      MILLRACE_RETURN_IF_ERROR(Close(std::get<transport::CloseSequence>(op)));
    }
  }
  return absl::OkStatus();
}

absl::Status Sequences::Open(const transport::OpenSequence& op,
                             RopeTables& ropes) {
  if (op.slot >= states_.size()) {
    return Broken(op.slot, "is beyond the slots of this stage");
  }
  State& state = states_[op.slot];
  if (state.is_open) {
    return Broken(op.slot, "is opened while open");
  }
  state.is_open = true;
  state.next_position = 0;
  state.open = op;
  ++num_open_;
  ropes.Open(op.slot, op.prompt_tokens);
  return absl::OkStatus();
}

absl::Status Sequences::Close(const transport::CloseSequence& op) {
  if (op.slot >= states_.size() || !states_[op.slot].is_open) {
    return Broken(op.slot, "is closed while not open");
  }
  states_[op.slot].is_open = false;
  --num_open_;
  for (KvPool& pool : pools_) {
    pool.Release(op.slot);
  }
  return absl::OkStatus();
}

absl::Status Sequences::AddRows(const std::vector<transport::Row>& rows,
                                StepContext& step) {
  step.rows.clear();
  for (const transport::Row& row : rows) {
    if (row.slot >= states_.size() || !states_[row.slot].is_open) {
      return Broken(row.slot, "has a row while not open");
    }
    states_[row.slot].rows_in_frame = 0;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const transport::Row& row = rows[i];
    State& state = states_[row.slot];
    if (row.position != state.next_position ||
        row.position >= config_.context) {
      return Broken(row.slot,
                    absl::StrCat("position ", row.position, " comes where ",
                                 state.next_position, " is due"));
    }
    ++state.next_position;
    if (++state.rows_in_frame > std::max<int64_t>(config_.prefill_chunk, 1)) {
      return Broken(row.slot, "has more rows in a frame than a chunk holds");
    }
    StepRow step_row;
    step_row.slot = row.slot;
    step_row.position = row.position;
    if ((row.flags & transport::kRowFailed) != 0) {
      step_row.failure = static_cast<transport::RowFailure>(row.target);
    }
    step.rows.push_back(step_row);
    for (size_t group = 0; group < pools_.size(); ++group) {
      KvPool& pool = pools_[group];
      if (!pool.Append(row.slot, row.position)) {
        return Broken(row.slot, "finds no free KV block");
      }
      step.store_blocks[group][i] = pool.BlockOf(row.slot, row.position);
      kernels::AttentionRow& attention = step.attention_rows[group][i];
      attention.blocks = pool.Table(row.slot);
      attention.num_blocks = pool.blocks_per_sequence();
      attention.position = row.position;
      attention.first_visible =
          pool.window() == 0
              ? 0
              : std::max<int64_t>(0, row.position - pool.window() + 1);
    }
  }
  return absl::OkStatus();
}

void Sequences::Reset() {
  for (State& state : states_) {
    state.is_open = false;
  }
  for (KvPool& pool : pools_) {
    pool.ReleaseAll();
  }
  num_open_ = 0;
}

int64_t Sequences::blocks_used() const {
  int64_t used = 0;
  for (const KvPool& pool : pools_) {
    used += pool.num_used();
  }
  return used;
}

int64_t Sequences::blocks_total() const {
  int64_t total = 0;
  for (const KvPool& pool : pools_) {
    total += pool.num_blocks();
  }
  return total;
}

}  // namespace millrace::worker
