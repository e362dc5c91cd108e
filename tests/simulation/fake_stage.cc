#include "tests/simulation/fake_stage.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tests/simulation/fake_model.h"

namespace millrace::coordinator {
namespace {

using transport::CloseSequence;
using transport::Frame;
using transport::OpenSequence;
using transport::Row;

absl::Status Broken(absl::string_view what, uint32_t slot, int64_t number) {
  return absl::InternalError(absl::StrCat(what, ": slot ", slot, ", ", number));
}

}  // namespace

FakeStage::FakeStage(const CoreConfig& config, int64_t index)
    : config_(config),
      index_(index),
      last_(index + 1 == static_cast<int64_t>(config.stages.size())) {}

absl::Status FakeStage::Process(Frame& frame) {
  const auto num_rows = static_cast<int64_t>(frame.rows.size());
  if (config_.rows_max > 0 && num_rows > config_.rows_max) {
    return Broken("too many rows", 0, num_rows);
  }
  if (frame.segment != index_) {
    return Broken("wrong segment", 0, frame.segment);
  }
  if (config_.ops_max > 0 &&
      static_cast<int64_t>(frame.ops.size()) > config_.ops_max) {
    return Broken("too many operations", 0, config_.ops_max);
  }
  if (frame.rows.empty() && frame.ops.empty()) {
    return Broken("an empty frame", 0, 0);
  }
  for (const transport::SequenceOp& op : frame.ops) {
    MILLRACE_RETURN_IF_ERROR(Apply(op));
  }
  MILLRACE_RETURN_IF_ERROR(CheckPools());
  int64_t prefill = 0;
  for (const Row& row : frame.rows) {
    MILLRACE_RETURN_IF_ERROR(ApplyRow(row, frame));
    prefill += (row.flags & transport::kRowDecode) == 0 ? 1 : 0;
  }
  if (prefill > config_.chunk) {
    return Broken("more prefill rows than the chunk", 0, prefill);
  }
  rows_ += num_rows;
  ++frame.segment;
  if (last_) {
    frame.ops.clear();
    frame.rows.clear();
  }
  return absl::OkStatus();
}

absl::Status FakeStage::Apply(const transport::SequenceOp& op) {
  if (const auto* close = std::get_if<CloseSequence>(&op)) {
    if (sequences_.erase(close->slot) == 0) {
      return Broken("closed while not open", close->slot, 0);
    }
    return absl::OkStatus();
  }
  const auto& open = std::get<OpenSequence>(op);
  const StagePool& pool = config_.stages[static_cast<size_t>(index_)];
  if (open.slot >= pool.slots) {
    return Broken("slot beyond the pool", open.slot, pool.slots);
  }
  if (open.tokens_max > config_.context) {
    return Broken("longer than the context", open.slot, open.tokens_max);
  }
  const bool fresh =
      sequences_
          .emplace(open.slot,
                   OpenSequenceState{.open = open,
                                     .next_position = 0,
                                     .state = FakeState(open.sampling.seed)})
          .second;
  return fresh ? absl::OkStatus() : Broken("opened twice", open.slot, 0);
}

absl::Status FakeStage::ApplyRow(const Row& row, Frame& frame) {
  const auto found = sequences_.find(row.slot);
  if (found == sequences_.end()) {
    return Broken("a row of no sequence", row.slot, row.position);
  }
  OpenSequenceState& sequence = found->second;
  if (row.position != sequence.next_position) {
    return Broken(absl::StrCat("expected position ", sequence.next_position),
                  row.slot, row.position);
  }
  if (row.position >= sequence.open.tokens_max) {
    return Broken("beyond its length", row.slot, row.position);
  }
  const bool decode = (row.flags & transport::kRowDecode) != 0;
  if (decode != (row.position >= sequence.open.prompt_tokens)) {
    return Broken("wrong kind of row", row.slot, row.position);
  }
  ++sequence.next_position;
  sequence.state = FakeNext(sequence.state, row.token);
  const bool wants = (row.flags & ~transport::kRowDecode) != 0;
  if (last_ && (wants || row.token >= kFakeOverflow)) {
    frame.results.push_back(
        FakeResult(sequence.state, row, sequence.open.top_logprobs));
  }
  return absl::OkStatus();
}

absl::Status FakeStage::CheckPools() const {
  const StagePool& pool = config_.stages[static_cast<size_t>(index_)];
  int64_t full = 0;
  std::vector<int64_t> rings(pool.windows.size());
  for (const auto& [slot, sequence] : sequences_) {
    const int64_t blocks =
        (int64_t{sequence.open.tokens_max} + kKvBlockPositions - 1) /
        kKvBlockPositions;
    full += blocks;
    for (size_t w = 0; w < rings.size(); ++w) {
      rings[w] += std::min(blocks, pool.windows[w].ring_blocks);
    }
  }
  if (pool.full_blocks > 0 && full > pool.full_blocks) {
    return Broken("more KV blocks than the pool has", 0, full);
  }
  for (size_t w = 0; w < rings.size(); ++w) {
    if (rings[w] > pool.windows[w].pool_blocks) {
      return Broken("more window blocks than the pool has", 0, rings[w]);
    }
  }
  return absl::OkStatus();
}

void FakeStage::Reset() { sequences_.clear(); }

}  // namespace millrace::coordinator
