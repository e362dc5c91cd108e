#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/control_messages.h"

namespace millrace::coordinator {

// One stream of one worker; never reused.
using SessionId = uint64_t;

// One stage of a plan, in the order of the route.
struct StageSeat {
  std::string worker;  // the name it was planned for
  control::Stage stage;
  int64_t memory_bytes = 0;  // what it takes in all; a replacement must have it
};

// What a planner makes of the workers that are there.
struct ClusterPlan {
  std::vector<StageSeat> seats;
  transport::FrameLimits limits;  // columns: hidden size
  uint32_t window = 1;  // frames under way on a link from or to the coordinator
  uint32_t stage_window = 1;  // on one between two stages
};

// Places the model on these workers, which are sorted by name. Pure. An error
// leaves the cluster waiting for other workers.
using Planner = std::function<absl::StatusOr<ClusterPlan>(
    const std::vector<control::Register>& workers)>;

struct MembershipOptions {
  int num_workers = 1;  // planning waits for so many
  std::string model_path;
  std::string model_digest;
  // Silence after which a worker counts as lost. Six heartbeats: a stall of a
  // second on a busy machine is no loss, a stopped process is found in three.
  absl::Duration lease = absl::Seconds(3);
  absl::Duration heartbeat = absl::Milliseconds(500);
  // For all links of an epoch to be up.
  absl::Duration activation_timeout = absl::Seconds(10);
};

// What the driver has to do, in order.
struct SendTo {
  SessionId session = 0;
  control::CoordinatorMessage message;
};
struct DropSession {  // the worker is told `reason`
  SessionId session = 0;
  absl::Status reason;
};
// Make tokens, send Activate along the route, link the coordinator itself.
struct BringUp {
  uint64_t epoch = 0;
};
// Close the coordinator's links. `worker` is empty where none is to blame.
struct TakeDown {
  uint64_t epoch = 0;
  bool was_ready = false;
  std::string worker;
  absl::Status reason;
};
struct BecomeReady {
  uint64_t epoch = 0;
};
struct ReportPlanned {};
struct ReportJoined {
  std::string worker;
};
// Its stream has ended; it held a stage.
struct ReportLost {
  std::string worker;
  absl::Status reason;
};
struct ReportPlanFailed {
  absl::Status reason;
};
struct ReportStageFailed {  // loading will be tried again
  std::string worker;
  absl::Status reason;
};
using MembershipAction =
    std::variant<SendTo, DropSession, BringUp, TakeDown, BecomeReady,
                 ReportJoined, ReportLost, ReportPlanned, ReportPlanFailed,
                 ReportStageFailed>;

// Who is in the cluster, who holds which stage, and when an epoch may run.
// A pure state machine: events in, actions out; the clock comes with the event
// (monotonic), sessions and links are the driver's. Owned by one thread.
//
//   gathering -> assembling -> activating -> ready
//                    ^______________|__________|   a worker or link is lost
class MembershipCore {
 public:
  enum class Phase { kGathering, kAssembling, kActivating, kReady };

  struct Member {
    SessionId session = 0;
    control::Register info;
    enum class Load { kNone, kLoading, kLoaded };
    Load load = Load::kNone;
    bool seated = false;
    bool active = false;  // in the current epoch
    int failures = 0;     // of loading, in a row
    absl::Duration retry_at;
    absl::Duration last_seen;
    control::Heartbeat heartbeat;
    control::Loaded loaded;
  };

  MembershipCore(MembershipOptions options, Planner planner);

  // Events of sessions. Every session registers first; those that are not
  // known are ignored.
  void OnMessage(absl::Duration now, SessionId session,
                 const control::WorkerMessage& message);
  void OnSessionEnd(absl::Duration now, SessionId session,
                    const absl::Status& reason);

  // Events of the coordinator's own links.
  void OnLinksUp(absl::Duration now, uint64_t epoch);
  void OnLinksFailed(absl::Duration now, uint64_t epoch,
                     const absl::Status& reason);

  // The driver itself did not run for a while and may have messages unread:
  // nobody's silence counts up to now.
  void OnStalled(absl::Duration now);
  // Time has passed.
  void OnTick(absl::Duration now);
  // When OnTick has something to do; infinite when never.
  [[nodiscard]] absl::Duration NextTick() const;

  // What the events since the last call ask for.
  std::vector<MembershipAction> TakeActions();

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] uint64_t epoch() const { return epoch_; }
  [[nodiscard]] const ClusterPlan& plan() const { return plan_; }
  // Who holds seat `index`; null when it is vacant.
  [[nodiscard]] const Member* Holder(size_t index) const;
  [[nodiscard]] const std::string& load_key(size_t index) const {
    return load_keys_[index];
  }
  // For people: what the cluster waits for; empty when ready.
  [[nodiscard]] std::string WaitsFor() const;
  [[nodiscard]] const std::map<SessionId, Member>& members() const {
    return members_;
  }

 private:
  void OnRegister(absl::Duration now, SessionId session,
                  const control::Register& info);
  void OnLoaded(Member& member, const control::Loaded& loaded);
  void OnFailed(absl::Duration now, Member& member,
                const control::Failed& failed);
  void Remove(absl::Duration now, SessionId session,
              const absl::Status& reason);
  // Does whatever has become possible.
  void Advance(absl::Duration now);
  void Plan();
  void FillSeats();
  void LoadStages(absl::Duration now);
  void BringUpIfAssembled(absl::Duration now);
  // Ends the epoch under way, if any.
  void Break(absl::Duration now, const std::string& worker,
             const absl::Status& reason);
  [[nodiscard]] Member* FindSeated(size_t index);
  [[nodiscard]] size_t SeatOf(SessionId session) const;  // kNoSeat
  [[nodiscard]] bool Fits(const Member& member, const StageSeat& seat) const;
  [[nodiscard]] bool AllSeatsLoaded() const;
  [[nodiscard]] bool EpochUnderWay() const {
    return phase_ == Phase::kActivating || phase_ == Phase::kReady;
  }

  static constexpr size_t kNoSeat = static_cast<size_t>(-1);

  const MembershipOptions options_;
  const Planner planner_;
  Phase phase_ = Phase::kGathering;
  uint64_t epoch_ = 0;
  ClusterPlan plan_;
  std::vector<std::string> load_keys_;   // by seat
  std::vector<SessionId> holders_;       // by seat, 0: vacant
  std::map<SessionId, Member> members_;  // in order of arrival
  bool planning_failed_ = false;         // with the members of now
  std::string planning_failure_;         // why
  bool links_up_ = false;
  // A stage's word that its link broke: held back for a moment, since the
  // neighbour of a worker that died often reports before the dead one is
  // missed.
  struct Suspicion {
    std::string worker;
    absl::Status reason;
    absl::Duration until;
  };
  std::optional<Suspicion> suspicion_;
  int breaks_ = 0;  // epochs that ended early, in a row
  absl::Duration ready_since_;
  absl::Duration activate_not_before_;
  absl::Duration activation_deadline_;
  std::vector<MembershipAction> actions_;
};

}  // namespace millrace::coordinator
