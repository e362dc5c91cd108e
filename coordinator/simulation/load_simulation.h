#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/core/pipeline_core.h"
#include "coordinator/simulation/fault.h"
#include "coordinator/simulation/load_report.h"
#include "coordinator/simulation/simulated_pipeline.h"
#include "coordinator/simulation/virtual_stages.h"
#include "coordinator/simulation/workload.h"
#include "transport/frame.h"

namespace millrace::coordinator {

struct LoadProgress {
  int64_t ended = 0;
  int64_t requests = 0;
  absl::Duration now;  // on the virtual clock
};

struct LoadOptions {
  Workload workload;
  std::vector<Fault> faults;  // by time
  ServiceLimits limits;
  // Called now and then; false ends the run with kCancelled.
  std::function<bool(const LoadProgress&)> go_on;
};

// Plays a load against the coordinator's core with stages that only take time.
// The core is the one that serves: its queue, ledger, scheduler and what it
// does when a stage is lost. Pure but for `go_on`: the same arguments give the
// same report. One run each; owned by one thread.
class LoadSimulation {
 public:
  // `pipeline` has been validated. Both outlive it.
  LoadSimulation(const SimulatedPipeline& pipeline, const LoadOptions& options);

  absl::StatusOr<LoadReport> Run();

 private:
  // One accepted request.
  struct Record {
    absl::Duration sent, first, last;
    int32_t input_tokens = 0;
    int32_t output_tokens = 0;  // so far
  };
  enum class TimerKind { kRetry, kLease };
  struct Timer {
    absl::Duration at;
    uint64_t order = 0;
    TimerKind kind = TimerKind::kRetry;
    int64_t node = 0;    // kLease
    uint64_t stall = 0;  // kLease: of which stall
    bool operator<(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Health {
    bool lost = false;
    uint64_t stall = 0;  // number of the present stall; 0: none
  };

  bool Step();
  void FireTimer();
  void Begin();
  void SubmitDue();
  void Submit(const TraceEntry& entry);
  void Refused(const absl::Status& error);
  void Settle();
  void SendFrames();
  void ListLengths();
  void FrameBack(int64_t ticket);
  void HearToken(Record& record);
  void HearFinish(const Record& record);
  void HearError(const absl::Status& error);
  void Ended();
  void SetTimer(Timer timer);

  void Apply(const Fault& fault);
  void Back(const Fault& fault);
  void LeaseEnds(int64_t node, uint64_t stall);
  void Disconnect(const absl::Status& reason);
  void ConnectIfWhole();
  LoadReport Report();

  const SimulatedPipeline& pipeline_;
  const LoadOptions& options_;
  const CoreConfig config_;
  PipelineCore core_;
  VirtualStages stages_;
  RequestSource source_;
  std::optional<TraceEntry> next_;  // of an open load: what arrives next

  std::vector<transport::Frame> frames_;  // by ticket; results for the return
  std::vector<int64_t> free_tickets_;
  std::vector<int64_t> lengths_;  // of the sequences of one frame
  transport::Frame scratch_;
  std::vector<Notice> notices_;
  std::vector<Record> records_;  // by request id - 1

  size_t next_fault_ = 0;
  std::priority_queue<Timer> timers_;
  std::vector<Health> health_;                 // by node
  std::set<std::pair<int64_t, int64_t>> cut_;  // lower index first
  uint64_t num_stalls_ = 0;
  uint64_t num_timers_ = 0;
  uint64_t epoch_ = 0;

  absl::Duration now_;
  LoadReport report_;
  int64_t second_ = 0;  // of the clock, and the tokens in it so far
  int64_t second_tokens_ = 0;
};

}  // namespace millrace::coordinator
