#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "stage-worker/kv/kv_pool.h"
#include "stage-worker/layers/rope_tables.h"
#include "stage-worker/layers/step_context.h"
#include "stage-worker/runtime/stage_config.h"
#include "transport/frame.h"

namespace millrace::worker {

// The sequences that a stage holds, by slot: their next position and their KV
// blocks. Step thread only. A frame that does not fit the state (a row of a
// closed slot, a position out of turn, more rows than a chunk, a pool run dry)
// is kDataLoss: the peer is broken and the link must go.
class Sequences {
 public:
  Sequences(const model::ModelSpec& spec, const StageConfig& config);

  // Applies the operations of a frame, in order.
  [[nodiscard]] absl::Status Apply(
      const std::vector<transport::SequenceOp>& ops, RopeTables& ropes);
  // Takes the rows in: blocks for their positions, and where each row's keys
  // lie, into `step`.
  [[nodiscard]] absl::Status AddRows(const std::vector<transport::Row>& rows,
                                     StepContext& step);
  // Drops everything; a new epoch starts empty.
  void Reset();

  [[nodiscard]] int64_t num_open() const { return num_open_; }
  [[nodiscard]] int64_t blocks_used() const;
  [[nodiscard]] int64_t blocks_total() const;
  [[nodiscard]] int64_t num_groups() const {
    return static_cast<int64_t>(pools_.size());
  }
  // Operations and length of the sequence in a slot; valid while it is open.
  [[nodiscard]] const transport::OpenSequence& opened(int64_t slot) const {
    return states_[static_cast<size_t>(slot)].open;
  }

 private:
  struct State {
    bool is_open = false;
    int64_t next_position = 0;
    int64_t rows_in_frame = 0;
    transport::OpenSequence open;
  };

  [[nodiscard]] absl::Status Open(const transport::OpenSequence& op,
                                  RopeTables& ropes);
  [[nodiscard]] absl::Status Close(const transport::CloseSequence& op);

  const StageConfig config_;
  std::vector<State> states_;  // [slots]
  std::vector<KvPool> pools_;  // one per KV group
  int64_t num_open_ = 0;
};

}  // namespace millrace::worker
