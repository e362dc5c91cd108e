#include "coordinator/membership/cluster.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "coordinator/membership/control_server.h"
#include "coordinator/membership/route_links.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::coordinator {
namespace {

using transport::Endpoint;

// Room for a heartbeat of every worker of a large cluster and then some; a
// session whose message finds no room is ended and dials again.
constexpr size_t kEventsMax = 4096;
// A stream that does not register in this time is no worker.
constexpr absl::Duration kRegisterTimeout = absl::Seconds(5);
// How often silent streams are looked for; also bounds every other wait.
constexpr absl::Duration kTickMax = absl::Seconds(1);
// A loop that was away for longer than its longest wait and a second more was
// stopped or starved, and so may have been the reading of heartbeats.
constexpr absl::Duration kStall = absl::Seconds(2);
// A process that died breaks its control stream within milliseconds of its
// links; half a second covers a loaded machine.
constexpr absl::Duration kExplainTimeout = absl::Milliseconds(500);

bool IsUnspecified(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

struct FromWorker {
  SessionId session = 0;
  control::WorkerMessage message;
  std::string peer_host;
};
struct SessionEnded {
  SessionId session = 0;
  absl::Status reason;
};
struct LinksUp {
  uint64_t epoch = 0;
  RouteLinks::Ends ends;
};
struct LinksFailed {
  uint64_t epoch = 0;
  absl::Status reason;
};
struct DrainAll {};
struct StopAll {
  bool shut_down_workers = false;
};
using Event = std::variant<FromWorker, SessionEnded, LinksUp, LinksFailed,
                           DrainAll, StopAll>;

class LiveCluster final : public Cluster {
 public:
  explicit LiveCluster(Options options)
      : options_(std::move(options)),
        core_(options_.membership, options_.planner),
        events_(kEventsMax) {}
  ~LiveCluster() override { Stop(false); }
  LiveCluster(const LiveCluster&) = delete;
  LiveCluster& operator=(const LiveCluster&) = delete;

  absl::Status Begin();

  [[nodiscard]] const Endpoint& control_endpoint() const override {
    return control_->endpoint();
  }
  void LinkLost(uint64_t epoch, const absl::Status& reason) override {
    Push(LinksFailed{epoch, reason});
  }
  absl::Status ExplainLoss(const absl::Status& observed) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] std::vector<StageSnapshot> Stages() const override
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return stages_;
  }
  [[nodiscard]] std::string WaitsFor() const override
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return waits_for_;
  }
  void Drain() override { Push(DrainAll{}); }
  void Stop(bool shut_down_workers) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Loss {
    std::string worker;
    absl::Status reason;
    absl::Duration at = -absl::InfiniteDuration();
  };

  void Push(Event event) {
    // Refused only once the cluster is stopping.
    static_cast<void>(events_.Push(std::move(event)));
  }

  void LoopOnLoop() noexcept;
  void HandleOnLoop(Event event);
  void HandleWorkerOnLoop(FromWorker event);
  // Completes an address that a worker cannot know and checks that it may be
  // dialed.
  [[nodiscard]] absl::Status AdmitOnLoop(control::Register& info,
                                         const std::string& peer_host) const;
  void ReportOnLoop(const FromWorker& event);
  void RunActionsOnLoop();
  void ActOnLoop(const SendTo& action);
  void ActOnLoop(const DropSession& action);
  void ActOnLoop(const BringUp& action);
  void ActOnLoop(const TakeDown& action);
  void ActOnLoop(const BecomeReady& action);
  void ActOnLoop(const ReportJoined& action);
  void ActOnLoop(const ReportLost& action);
  void ActOnLoop(const ReportPlanned& action);
  void ActOnLoop(const ReportPlanFailed& action);
  void ActOnLoop(const ReportStageFailed& action);
  void EndLinking();
  void StopOnLoop(bool shut_down_workers);
  void PublishOnLoop() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const SystemClock clock_;
  std::unique_ptr<transport::TcpListener> results_;
  std::unique_ptr<ControlServer> control_;

  // Loop only.
  MembershipCore core_;
  RouteLinks::Ends ends_;  // of the epoch that is coming up
  std::thread linking_;    // one at a time
  std::atomic<bool> linking_cancelled_{false};
  bool up_ = false;  // OnReady without OnDown
  bool stopped_ = false;
  absl::Duration silent_checked_at_;
  absl::Duration ran_at_;

  BoundedQueue<Event> events_;

  mutable Mutex mutex_;
  CondVar lost_;
  std::vector<StageSnapshot> stages_ ABSL_GUARDED_BY(mutex_);
  std::string waits_for_ ABSL_GUARDED_BY(mutex_);
  Loss last_loss_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread loop_;
};

absl::Status LiveCluster::Begin() {
  MILLRACE_RETURN_IF_ERROR(
      transport::RequireTrustedLink(options_.control, options_.insecure));
  MILLRACE_RETURN_IF_ERROR(
      transport::RequireTrustedLink(options_.data, options_.insecure));
  MILLRACE_ASSIGN_OR_RETURN(results_,
                            transport::TcpListener::Listen(options_.data));
  ControlServer::Options server;
  server.listen = options_.control;
  server.on_message = [this](SessionId session, control::WorkerMessage message,
                             const std::string& peer_host) {
    Event event = FromWorker{session, std::move(message), peer_host};
    if (!events_.TryPush(std::move(event))) {
      control_->End(session, MakeError(absl::StatusCode::kResourceExhausted,
                                       "coordinator", "is overloaded"));
    }
  };
  server.on_end = [this](SessionId session, const absl::Status& reason) {
    Push(SessionEnded{session, reason});
  };
  PublishOnLoop();
  MILLRACE_ASSIGN_OR_RETURN(control_, ControlServer::Start(std::move(server)));
  loop_ = std::thread([this]() noexcept { LoopOnLoop(); });
  return absl::OkStatus();
}

void LiveCluster::LoopOnLoop() noexcept {
  ran_at_ = clock_.Monotonic();
  while (!stopped_) {
    const absl::Duration wait = std::clamp(
        core_.NextTick() - clock_.Monotonic(), absl::ZeroDuration(), kTickMax);
    if (std::optional<Event> event = events_.PopFor(wait)) {
      HandleOnLoop(*std::move(event));
      RunActionsOnLoop();
    }
    const absl::Duration now = clock_.Monotonic();
    if (now > ran_at_ + kStall) {
      core_.OnStalled(now);
    }
    ran_at_ = now;
    if (now >= core_.NextTick()) {
      core_.OnTick(now);
      RunActionsOnLoop();
    }
    if (now >= silent_checked_at_ + kTickMax) {
      silent_checked_at_ = now;
      control_->EndSilent(kRegisterTimeout);
    }
    PublishOnLoop();
  }
}

void LiveCluster::HandleOnLoop(Event event) {
  const absl::Duration now = clock_.Monotonic();
  if (auto* message = std::get_if<FromWorker>(&event)) {
    HandleWorkerOnLoop(std::move(*message));
  } else if (const auto* ended = std::get_if<SessionEnded>(&event)) {
    core_.OnSessionEnd(now, ended->session, ended->reason);
  } else if (auto* up = std::get_if<LinksUp>(&event)) {
    if (up->epoch == core_.epoch()) {
      ends_ = std::move(up->ends);
      core_.OnLinksUp(now, up->epoch);
    }
  } else if (const auto* failed = std::get_if<LinksFailed>(&event)) {
    core_.OnLinksFailed(now, failed->epoch, failed->reason);
  } else if (std::holds_alternative<DrainAll>(event)) {
    for (const auto& [session, member] : core_.members()) {
      control_->Send(session, control::Drain{});
    }
  } else if (const auto* stop = std::get_if<StopAll>(&event)) {
    StopOnLoop(stop->shut_down_workers);
  }
}

void LiveCluster::HandleWorkerOnLoop(FromWorker event) {
  auto* info = std::get_if<control::Register>(&event.message);
  // Of another version nothing but that is known; the core refuses it.
  if (info != nullptr && info->wire_version == control::kWireVersion) {
    if (absl::Status status = AdmitOnLoop(*info, event.peer_host);
        !status.ok()) {
      MILLRACE_LOG(Warning) << "refused a worker: " << status.message();
      control_->End(event.session, status);
      return;
    }
  }
  if (info == nullptr && !core_.members().contains(event.session)) {
    // It would hold its place for ever; one that was dropped ends as it is.
    control_->End(event.session,
                  MakeError(absl::StatusCode::kInvalidArgument,
                            "control stream", "began without registering"));
    return;
  }
  core_.OnMessage(clock_.Monotonic(), event.session, event.message);
  ReportOnLoop(event);
}

absl::Status LiveCluster::AdmitOnLoop(control::Register& info,
                                      const std::string& peer_host) const {
  if (IsUnspecified(info.data_address.host)) {
    if (peer_host.empty()) {
      return MakeError(absl::StatusCode::kInvalidArgument, info.name,
                       "its address for links is not known",
                       "give the worker a --listen with its own address");
    }
    info.data_address.host = peer_host;
  }
  // A name would have this thread wait for a name server.
  if (!transport::IsAddressLiteral(info.data_address.host)) {
    return MakeError(absl::StatusCode::kInvalidArgument, info.name,
                     "its address for links is a name, not an address");
  }
  return transport::RequireTrustedLink(info.data_address, options_.insecure);
}

void LiveCluster::ReportOnLoop(const FromWorker& event) {
  const auto found = core_.members().find(event.session);
  if (found == core_.members().end()) {
    return;
  }
  const std::string& name = found->second.info.name;
  if (const auto* progress =
          std::get_if<control::LoadProgress>(&event.message)) {
    options_.listener->OnLoadProgress(name, progress->bytes_done,
                                      progress->bytes_total);
  } else if (const auto* loaded =
                 std::get_if<control::Loaded>(&event.message)) {
    options_.listener->OnStageLoaded(name, *loaded);
  }
}

void LiveCluster::RunActionsOnLoop() {
  for (const MembershipAction& action : core_.TakeActions()) {
    std::visit([this](const auto& what) { ActOnLoop(what); }, action);
  }
}

void LiveCluster::ActOnLoop(const SendTo& action) {
  control_->Send(action.session, action.message);
}

void LiveCluster::ActOnLoop(const DropSession& action) {
  MILLRACE_LOG(Warning) << "ends a worker's session: "
                        << action.reason.message();
  control_->End(action.session, action.reason);
}

void LiveCluster::ActOnLoop(const BringUp& action) {
  EndLinking();
  const ClusterPlan& plan = core_.plan();
  std::vector<Endpoint> stages;
  for (size_t i = 0; i < plan.seats.size(); ++i) {
    stages.push_back(core_.Holder(i)->info.data_address);
  }
  // An unspecified host of the results' address stands for the one under which
  // a worker reaches the coordinator.
  auto links = std::make_shared<RouteLinks>(
      RouteLinks::Options{.epoch = action.epoch,
                          .limits = plan.limits,
                          .window = plan.window,
                          .stage_window = plan.stage_window,
                          .checksum = options_.checksum,
                          .timeout = options_.membership.activation_timeout},
      std::move(stages), results_->endpoint());
  for (size_t i = 0; i < plan.seats.size(); ++i) {
    control_->Send(core_.Holder(i)->session,
                   links->ForSeat(i, core_.load_key(i)));
  }
  linking_cancelled_ = false;
  linking_ = std::thread([this, links, epoch = action.epoch]() noexcept {
    absl::StatusOr<RouteLinks::Ends> ends =
        links->Connect(*results_, linking_cancelled_);
    Event event = LinksFailed{epoch, ends.status()};
    if (ends.ok()) {
      event = LinksUp{epoch, *std::move(ends)};
    } else if (absl::IsCancelled(ends.status())) {
      return;
    }
    // Without waiting: the loop may be waiting for this thread. When there is
    // no room the activation's deadline takes over.
    if (!events_.TryPush(std::move(event))) {
      MILLRACE_LOG(Warning) << "too many events, links are made anew";
    }
  });
}

void LiveCluster::EndLinking() {
  linking_cancelled_ = true;
  if (linking_.joinable()) {
    linking_.join();
  }
  ends_ = {};
}

void LiveCluster::ActOnLoop(const TakeDown& action) {
  EndLinking();
  const absl::Status reason =
      action.worker.empty()
          ? action.reason
          : WithObject(action.reason,
                       absl::StrCat("stage worker ", action.worker));
  MILLRACE_LOG(Warning) << "epoch " << action.epoch
                        << " has ended: " << reason.message();
  if (action.was_ready) {
    up_ = false;
    options_.listener->OnDown(action.epoch, reason);
  }
}

void LiveCluster::ActOnLoop(const BecomeReady& action) {
  MILLRACE_LOG(Info) << "epoch " << action.epoch
                     << " is ready, stages: " << core_.plan().seats.size();
  up_ = true;
  options_.listener->OnReady(action.epoch, std::move(ends_.sender),
                             std::move(ends_.receiver));
}

void LiveCluster::ActOnLoop(const ReportJoined& action) {
  MILLRACE_LOG(Info) << "worker " << action.worker << " has registered";
  options_.listener->OnWorkerJoined(action.worker);
}

void LiveCluster::ActOnLoop(const ReportLost& action) {
  {
    MutexLock lock(mutex_);
    last_loss_ = {action.worker, action.reason, clock_.Monotonic()};
    lost_.NotifyAll();
  }
  options_.listener->OnWorkerLost(action.worker, action.reason);
}

void LiveCluster::ActOnLoop(const ReportPlanned&) {
  options_.listener->OnPlanned(core_.plan());
}

void LiveCluster::ActOnLoop(const ReportPlanFailed& action) {
  MILLRACE_LOG(Warning) << "no stages: " << action.reason.message();
  options_.listener->OnPlanFailed(action.reason);
}

void LiveCluster::ActOnLoop(const ReportStageFailed& action) {
  MILLRACE_LOG(Warning) << "worker " << action.worker
                        << " cannot load: " << action.reason.message();
  options_.listener->OnStageFailed(action.worker, action.reason);
}

absl::Status LiveCluster::ExplainLoss(const absl::Status& observed) {
  const absl::Duration start = clock_.Monotonic();
  MutexLock lock(mutex_);
  // A loss that was noticed shortly before the link broke is the same one.
  while (last_loss_.at < start - kTickMax && !stopping_ &&
         clock_.Monotonic() < start + kExplainTimeout) {
    lost_.WaitFor(mutex_, kExplainTimeout);
  }
  if (last_loss_.at < start - kTickMax) {
    return observed;
  }
  return WithObject(last_loss_.reason,
                    absl::StrCat("stage worker ", last_loss_.worker));
}

void LiveCluster::PublishOnLoop() {
  std::vector<StageSnapshot> stages;
  const auto& seats = core_.plan().seats;
  for (size_t i = 0; i < seats.size(); ++i) {
    StageSnapshot& stage = stages.emplace_back();
    const MembershipCore::Member* member = core_.Holder(i);
    stage.name = member != nullptr ? member->info.name : seats[i].worker;
    stage.first_layer = seats[i].stage.first_layer;
    stage.last_layer = seats[i].stage.last_layer;
    stage.alive = member != nullptr && member->active;
    if (member == nullptr) {
      continue;
    }
    const control::StageCounters& counters = member->heartbeat.stage;
    stage.busy = counters.busy;
    stage.wait_for_input = counters.wait_for_input;
    stage.wait_for_credit = counters.wait_for_credit;
    stage.frames = counters.frames;
    stage.rows = counters.rows;
    stage.kv_blocks_used = counters.kv_blocks_used;
    stage.kv_blocks_total = counters.kv_blocks_total;
    stage.resident_bytes = member->heartbeat.resident_bytes;
    stage.kernels = member->info.kernels;
  }
  std::string waits_for = core_.WaitsFor();
  MutexLock lock(mutex_);
  stages_ = std::move(stages);
  waits_for_ = std::move(waits_for);
}

void LiveCluster::StopOnLoop(bool shut_down_workers) {
  EndLinking();
  if (up_) {
    up_ = false;
    options_.listener->OnDown(
        core_.epoch(), MakeError(absl::StatusCode::kCancelled, "coordinator",
                                 "is shutting down"));
  }
  for (const auto& [session, member] : core_.members()) {
    control_->Send(session, control::Deactivate{core_.epoch()});
    if (shut_down_workers) {
      control_->Send(session, control::Shutdown{});
    }
  }
  stopped_ = true;
}

void LiveCluster::Stop(bool shut_down_workers) {
  {
    MutexLock lock(mutex_);
    if (stopping_) {
      return;
    }
    stopping_ = true;
    lost_.NotifyAll();
  }
  if (loop_.joinable()) {
    Push(StopAll{shut_down_workers});
    loop_.join();
  }
  // Nobody pops any more: late events must not wait for room.
  events_.Close();
  if (control_ != nullptr) {
    control_->Stop();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(Options options) {
  auto cluster = std::make_unique<LiveCluster>(std::move(options));
  if (absl::Status status = cluster->Begin(); !status.ok()) {
    return status;
  }
  return std::unique_ptr<Cluster>(std::move(cluster));
}

}  // namespace millrace::coordinator
