#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/core/core_config.h"
#include "coordinator/core/sequence.h"
#include "transport/frame.h"

namespace millrace::coordinator {

// Decides what each frame carries. N micro-batches circulate, each with at
// most one frame under way:
//  - a decoding sequence belongs to one micro-batch; those that are ready move
//    so that micro-batches differ by at most one row;
//  - prompts share the chunk of a frame in turns, and consecutive pieces of one
//    prompt may be under way in several micro-batches (channels keep order);
//  - an open rides with a sequence's first row, a close in the next frame that
//    leaves after its end.
// Owned by the core; pure.
class Scheduler {
 public:
  // Rows of one sequence in a frame.
  struct Part {
    RequestId id = 0;
    uint32_t slot = 0;
    int64_t last_position = 0;
    int64_t prompt_rows = 0;
  };
  struct Closing {
    uint32_t slot = 0;
    int64_t positions = 0;  // of the reservation that comes back with it
  };
  struct MicroBatch {
    bool in_flight = false;
    uint64_t id = 0;  // of the frame under way
    absl::Duration sent_at;
    std::vector<Sequence*> members;  // decoding
    std::vector<Part> parts;         // of the frame under way
    std::vector<Closing> closing;    // by the frame under way
  };

  // `config` has been validated and has its defaults.
  explicit Scheduler(const CoreConfig& config);

  // An admitted sequence, which must stay in place until Remove or Reset.
  void AddPrefill(Sequence* sequence);
  // It is not scheduled any more; closes it on the stages. Only for sequences
  // whose open has left (`opened`) is there something to close.
  void Remove(Sequence* sequence);
  // Writes the next frame that should leave; false when nothing should now.
  // Sets neither epoch nor segment.
  bool Compose(absl::Duration now, transport::Frame& frame);
  // The micro-batch whose frame this is; null when unknown.
  MicroBatch* Find(uint64_t microbatch);
  // Its frame is back and has been dealt with.
  void Returned(MicroBatch& microbatch);
  // Forgets all sequences and frames.
  void Reset();

  [[nodiscard]] int64_t in_flight() const { return in_flight_; }
  [[nodiscard]] int64_t num_microbatches() const {
    return static_cast<int64_t>(microbatches_.size());
  }
  // Nothing to send, nothing under way.
  [[nodiscard]] bool idle() const;

 private:
  void Rebalance();
  MicroBatch* LeastLoaded();
  bool ComposeRows(MicroBatch& microbatch, transport::Frame& frame);
  void AddDecodeRows(MicroBatch& microbatch, int64_t rows_max,
                     transport::Frame& frame);
  void AddPrefillRows(MicroBatch& microbatch, int64_t rows_max,
                      transport::Frame& frame);
  void SharePrefill(int64_t rows, int64_t opens, int64_t ends);
  void AddPromptRows(Sequence& sequence, int64_t count, MicroBatch& microbatch,
                     transport::Frame& frame);
  void AddCloses(MicroBatch& microbatch, transport::Frame& frame);
  // Rows of prefill that the next frame should carry.
  [[nodiscard]] int64_t PieceRows() const;
  // Prompts that may end in this frame without loading its micro-batch more
  // than the others.
  [[nodiscard]] int64_t EndsMax(const MicroBatch& microbatch) const;

  const int64_t num_stages_;
  const int64_t chunk_;
  const int64_t rows_max_;
  const int64_t ops_max_;
  const int64_t fixed_cost_rows_;

  std::vector<MicroBatch> microbatches_;
  std::vector<MicroBatch*> idle_order_;  // scratch of Compose
  std::vector<Sequence*> prefill_;       // next in turn first
  std::vector<int64_t> shares_;          // rows for each of prefill_
  std::vector<Sequence*> prefill_next_;  // scratch of AddPrefillRows
  std::vector<Closing> closing_;         // to be sent
  int64_t in_flight_ = 0;
  uint64_t next_id_ = 1;
};

}  // namespace millrace::coordinator
