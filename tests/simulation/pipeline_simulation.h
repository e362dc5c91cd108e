#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/core/pipeline_core.h"
#include "tests/simulation/fake_model.h"
#include "tests/simulation/fake_stage.h"

namespace millrace::coordinator {

// The coordinator core and fake stages under one virtual clock. Everything is
// drawn from a seed: the pipeline's shape and pools, service and hop times,
// arrivals, lengths, cancels, losses of a stage and its return, frames of an
// old epoch that come late. After every event all invariants are checked.
class PipelineSimulation {
 public:
  struct Totals {
    int64_t events = 0;
    int64_t requests = 0;
    int64_t finished = 0;
    int64_t cancelled = 0;
    int64_t lost = 0;
    int64_t expired = 0;
    int64_t refused = 0;
    int64_t out_of_range = 0;
    int64_t losses = 0;
  };

  explicit PipelineSimulation(uint64_t seed);
  // Plays to the end; the error says which invariant broke and when.
  absl::Status Run();
  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  enum class EventKind { kSubmit, kCancel, kStageDone, kReturn, kLose, kBack };
  struct Event {
    absl::Duration at;
    uint64_t order = 0;  // of equal times, the first scheduled first
    EventKind kind = EventKind::kSubmit;
    int64_t index = 0;   // of the stage or planned request
    uint64_t epoch = 0;  // what was scheduled before a loss is void
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Planned {
    GenerateRequest request;
    FakeAnswer oracle;
    std::optional<RequestId> id;
    bool cancelled = false;
    bool started = false;
    bool ended = false;
    size_t tokens = 0;
    size_t scores = 0;
  };
  // A stage and the frames that wait for it, the first being computed.
  struct Server {
    FakeStage stage;
    std::deque<transport::Frame> queue;
  };

  int64_t Uniform(int64_t low, int64_t high);  // both included
  bool Chance(int64_t percent) { return Uniform(1, 100) <= percent; }
  static CoreConfig MakeConfig(std::mt19937_64& random);
  GenerateRequest MakeRequest();
  void PlanRequests();
  void PlanLosses();

  void Schedule(absl::Duration at, EventKind kind, int64_t index = 0);
  absl::Status Step(std::optional<absl::Duration> deadline);
  absl::Status Handle(const Event& event);
  void Submit(int64_t index);
  void Arrive(int64_t stage, transport::Frame frame);
  absl::Status StageDone(int64_t stage);
  void ReturnFrame();
  void Lose();
  void SendFrames();
  absl::Duration ServiceTime(const transport::Frame& frame);

  absl::Status Listen();
  absl::Status Hear(Planned& planned, const Notice& notice);
  absl::Status HearEnd(Planned& planned, const absl::Status& error);
  absl::Status CheckStep() const;
  absl::Status CheckEnd() const;

  std::mt19937_64 random_;
  const CoreConfig config_;
  PipelineCore core_;
  std::vector<Server> servers_;
  std::deque<transport::Frame> returning_;
  std::vector<transport::Frame> ghosts_;  // of epochs that are gone
  std::priority_queue<Event> events_;
  std::vector<Planned> planned_;
  std::map<RequestId, size_t> by_id_;
  std::vector<Notice> notices_;
  absl::Duration now_ = absl::Seconds(1);
  uint64_t order_ = 0;
  uint64_t epoch_ = 0;
  RequestId last_started_ = 0;
  Totals totals_;
};

}  // namespace millrace::coordinator
