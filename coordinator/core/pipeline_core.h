#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/core/core_config.h"
#include "coordinator/core/kv_ledger.h"
#include "coordinator/core/pipeline_meter.h"
#include "coordinator/core/scheduler.h"
#include "coordinator/core/sequence.h"
#include "coordinator/core/waiting_queue.h"
#include "coordinator/engine/engine.h"
#include "transport/frame.h"

namespace millrace::coordinator {

// The prompt is being read.
struct Started {};

// Something that an observer is to be told. FinishReason and absl::Status are
// terminal: exactly one of them, last, for every request that was accepted.
struct Notice {
  RequestId id = 0;
  std::variant<Started, ScoreEvent, TokenEvent, FinishReason, absl::Status>
      what;
};

struct CoreCounters {
  int64_t finished = 0;
  int64_t failed = 0;
  int64_t cancelled = 0;
  int64_t refused = 0;
  int64_t prompt_tokens = 0;  // rows of prompts sent and answered for
  int64_t generated_tokens = 0;
  int64_t frames_ignored = 0;   // of another epoch or unknown
  int64_t results_ignored = 0;  // late, repeated or for nobody
};

// The coordinator's requests, ledger and scheduler as one state machine.
// Events go in by the methods, frames come out of PollFrame and what observers
// should hear out of TakeNotices; after any event poll both until dry. Pure:
// no threads, clocks, sockets or randomness of its own; `now` is monotonic
// time and must not run backwards. Owned by one thread or one lock.
// Decoding allocates nothing after warm-up.
class PipelineCore {
 public:
  // `config` has been validated.
  explicit PipelineCore(const CoreConfig& config);

  // Engine::Submit: the same refusals. Accepted requests are admitted at once
  // or wait in the queue.
  absl::StatusOr<RequestId> Submit(absl::Duration now, GenerateRequest request);
  void Cancel(absl::Duration now, RequestId id);
  // Ends everything with `reason`, as for a stop of the program.
  void FailAll(absl::Duration now, const absl::Status& reason);
  // Refuses what is submitted from now on; what was accepted goes on.
  void StopIntake();

  // All stages are up and empty. `epoch` is larger than any before.
  void Connect(absl::Duration now, uint64_t epoch);
  // A stage or link is lost; `reason` names it. Running requests end with
  // kUnavailable, the stages' sequences are forgotten; the queue waits on.
  void Disconnect(absl::Duration now, const absl::Status& reason);
  // A frame came from the last stage.
  void FrameReturned(absl::Duration now, const transport::Frame& frame);
  // To be called at NextDeadline, no harm earlier.
  void TimePassed(absl::Duration now);
  // When the oldest in the queue has waited too long; nothing when none waits.
  [[nodiscard]] std::optional<absl::Duration> NextDeadline() const;

  // Writes the next frame to send to the first stage; false when there is
  // none now. It counts as under way from here on.
  bool PollFrame(absl::Duration now, transport::Frame& frame);
  // Appends what has happened since the last call to `out`, in order.
  void TakeNotices(std::vector<Notice>& out);

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] bool accepting() const { return accepting_; }
  [[nodiscard]] uint64_t epoch() const { return epoch_; }
  // Live: waiting or running.
  [[nodiscard]] int64_t num_requests() const {
    return static_cast<int64_t>(sequences_.size());
  }
  [[nodiscard]] int64_t num_waiting() const { return waiting_.size(); }
  [[nodiscard]] const CoreCounters& counters() const { return counters_; }
  [[nodiscard]] const KvLedger& ledger() const { return ledger_; }
  [[nodiscard]] const Scheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] double PipelineFill() const;
  [[nodiscard]] absl::Duration CycleP50() const { return meter_.CycleP50(); }

  // Fills all that the core knows; `stages` with the ledger's view.
  void FillSnapshot(EngineSnapshot& snapshot) const;

 private:
  absl::Status Validate(const GenerateRequest& request) const;
  absl::Status ValidateLength(const GenerateRequest& request) const;
  absl::Status Refuse(absl::Status status);
  absl::Status QueueIsFull(absl::Duration now, int64_t positions) const;
  void Admit();
  void HandleResult(absl::Duration now, const transport::Result& result);
  void HandleScore(Sequence& sequence, const transport::Result& result);
  void HandleToken(absl::Duration now, Sequence& sequence,
                   const transport::Result& result);
  void CheckPart(absl::Duration now, const Scheduler::Part& part);
  Sequence* BySlot(uint32_t slot);
  void Finish(absl::Duration now, Sequence& sequence, FinishReason reason);
  void Fail(absl::Duration now, Sequence& sequence, absl::Status error);
  // Frees what it holds; `sequence` is gone afterwards.
  void End(absl::Duration now, Sequence& sequence);
  void ReleaseSlot(uint32_t slot, int64_t positions);
  void Advance(absl::Duration now);
  [[nodiscard]] std::string BindingShortage(int64_t positions) const;

  const CoreConfig config_;
  KvLedger ledger_;
  WaitingQueue waiting_;
  Scheduler scheduler_;
  PipelineMeter meter_;
  CoreCounters counters_;

  absl::flat_hash_map<RequestId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> by_slot_;  // null: free or closing
  std::vector<uint32_t> free_slots_;
  std::vector<Notice> notices_;
  RequestId next_id_ = 1;
  uint64_t epoch_ = 0;
  bool connected_ = false;
  bool accepting_ = true;
  std::string not_ready_reason_;
};

}  // namespace millrace::coordinator
