#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "coordinator/core/core_config.h"
#include "transport/frame.h"

namespace millrace::coordinator {

// A stage that computes FakeState instead of hidden states and checks what a
// real one relies on: opens and closes match, the rows of a sequence come in
// order from position 0 and within what its open said, pools, slots, rows and
// operations stay within their limits.
class FakeStage {
 public:
  // `index` in the route of `config`; `config` outlives it.
  FakeStage(const CoreConfig& config, int64_t index);

  // One pass; on the last stage the rows turn into results. The error says
  // what was broken.
  absl::Status Process(transport::Frame& frame);
  // A fresh epoch: everything is dropped.
  void Reset();

  [[nodiscard]] int64_t num_open() const {
    return static_cast<int64_t>(sequences_.size());
  }
  [[nodiscard]] int64_t rows() const { return rows_; }

 private:
  struct OpenSequenceState {
    transport::OpenSequence open;
    int64_t next_position = 0;
    uint64_t state = 0;
  };

  absl::Status Apply(const transport::SequenceOp& op);
  absl::Status ApplyRow(const transport::Row& row, transport::Frame& frame);
  absl::Status CheckPools() const;

  const CoreConfig& config_;
  const int64_t index_;
  const bool last_;
  std::map<uint32_t, OpenSequenceState> sequences_;  // by slot
  int64_t rows_ = 0;
};

}  // namespace millrace::coordinator
