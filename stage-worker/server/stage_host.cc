#include "stage-worker/server/stage_host.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "stage-worker/server/resident_bytes.h"

namespace millrace::worker {
namespace {

// Commands come one at a time from a coordinator that waits for answers.
constexpr size_t kCommandsMax = 64;

transport::TcpLinkOptions TcpOf(const control::Activate& activate,
                                bool upstream) {
  const transport::FrameLimits& limits =
      upstream ? activate.upstream_limits : activate.downstream_limits;
  return {
      .epoch = activate.epoch,
      .segment = activate.segment + (upstream ? 0 : 1),
      .token = upstream ? activate.upstream_token : activate.downstream_token,
      .frame_bytes_max = limits.FrameBytesMax(),
      .window =
          upstream ? activate.upstream_window : activate.downstream_window};
}

transport::LinkOptions LinkOf(const control::Activate& activate,
                              bool upstream) {
  return {.limits =
              upstream ? activate.upstream_limits : activate.downstream_limits,
          .epoch = activate.epoch,
          .window =
              upstream ? activate.upstream_window : activate.downstream_window,
          .checksum = true};
}

}  // namespace

StageHost::StageHost(Options options)
    : options_(std::move(options)),
      commands_(kCommandsMax),
      thread_([this]() noexcept { Work(); }) {}

StageHost::~StageHost() {
  {
    MutexLock lock(mutex_);
    for (const Flag& flag : {load_cancelled_, links_cancelled_}) {
      if (flag != nullptr) {
        *flag = true;
      }
    }
  }
  commands_.Close();
  thread_.join();
}

StageHost::Flag StageHost::Renew(Flag& flag) {
  MutexLock lock(mutex_);
  if (flag != nullptr) {
    *flag = true;
  }
  flag = std::make_shared<std::atomic<bool>>(false);
  return flag;
}

void StageHost::Load(control::Load load) {
  Flag cancelled;
  {
    MutexLock lock(mutex_);
    // A coordinator that came back asks for what is under way already.
    const bool same = load.load_key == wanted_key_ && load_cancelled_;
    if (!same && load_cancelled_) {
      *load_cancelled_ = true;
    }
    if (!same) {
      load_cancelled_ = std::make_shared<std::atomic<bool>>(false);
    }
    wanted_key_ = load.load_key;
    cancelled = load_cancelled_;
  }
  // False only while the worker ends.
  (void)commands_.Push(LoadCommand{std::move(load), std::move(cancelled)});
}

void StageHost::Activate(control::Activate activate) {
  Flag cancelled = Renew(links_cancelled_);
  (void)commands_.Push(
      ActivateCommand{std::move(activate), std::move(cancelled)});
}

void StageHost::Deactivate(uint64_t epoch) {
  Renew(links_cancelled_);
  (void)commands_.Push(control::Deactivate{epoch});
}

std::string StageHost::load_key() const {
  MutexLock lock(mutex_);
  return load_key_;
}

control::StageCounters StageHost::Counters() const {
  std::shared_ptr<StageRunner> runner;
  std::shared_ptr<LinkTotals> totals;
  {
    MutexLock lock(mutex_);
    runner = runner_;
    totals = totals_;
  }
  control::StageCounters out;
  if (runner == nullptr) {
    return out;
  }
  const StageCounters in = runner->Counters();
  out.frames = in.frames;
  out.rows = in.rows;
  out.bytes_received = totals->bytes_received;
  out.bytes_sent = totals->bytes_sent;
  out.busy = in.busy;
  out.wait_for_input = in.wait_for_input;
  out.wait_for_credit = in.wait_for_credit;
  out.sequences_open = in.sequences_open;
  out.kv_blocks_used = in.kv_blocks_used;
  out.kv_blocks_total = in.kv_blocks_total;
  return out;
}

void StageHost::SetRunner(std::unique_ptr<StageRunner> runner,
                          const std::string& key) {
  std::shared_ptr<StageRunner> old;
  MutexLock lock(mutex_);
  old = std::move(runner_);
  runner_ = std::move(runner);
  totals_ = std::make_shared<LinkTotals>();
  load_key_ = key;
  // `old` is released after the lock: a heartbeat may hold it for a moment.
}

void StageHost::Work() noexcept {
  while (std::optional<Command> command = commands_.Pop()) {
    std::visit([this](const auto& what) { Run(what); }, *command);
  }
  StopRunner();
}

void StageHost::StopRunner() {
  std::shared_ptr<StageRunner> runner;
  {
    MutexLock lock(mutex_);
    runner = runner_;
  }
  if (quiet_ != nullptr) {
    *quiet_ = true;
  }
  if (runner != nullptr) {
    runner->Stop();
  }
  running_epoch_ = 0;
}

void StageHost::Run(const LoadCommand& command) {
  const control::Load& load = command.load;
  if (load_key() != load.load_key) {
    StopRunner();
    SetRunner(nullptr, "");  // its memory is needed for the next one
    absl::StatusOr<std::unique_ptr<StageRunner>> runner =
        options_.factory->Create(
            load,
            [this, &load](const LoadProgress& progress) {
              options_.emit(control::LoadProgress{
                  load.load_key, progress.bytes_done, progress.bytes_total});
            },
            [&command] { return command.cancelled->load(); });
    if (!runner.ok()) {
      MILLRACE_LOG(Warning) << "cannot load: " << runner.status().message();
      options_.emit(control::Failed{control::Operation::kLoad, load.load_key, 0,
                                    runner.status()});
      return;
    }
    SetRunner(*std::move(runner), load.load_key);
    ReturnFreedMemory();
  }
  StageMemory memory;
  {
    MutexLock lock(mutex_);
    memory = runner_->memory();
  }
  options_.emit(control::Loaded{load.load_key, memory.weights_bytes,
                                memory.kv_bytes, memory.scratch_bytes});
}

void StageHost::Run(const ActivateCommand& command) {
  absl::Status status = TryActivate(command);
  if (status.ok()) {
    options_.emit(control::Active{command.activate.epoch});
  } else if (!absl::IsCancelled(status)) {
    MILLRACE_LOG(Warning) << "epoch " << command.activate.epoch
                          << " cannot be activated: " << status.message();
    options_.emit(control::Failed{control::Operation::kActivate, "",
                                  command.activate.epoch, status});
  }
}

void StageHost::Run(const control::Deactivate& command) {
  if (command.epoch == 0 || command.epoch == running_epoch_) {
    StopRunner();
  }
}

absl::Status StageHost::TryActivate(const ActivateCommand& command) {
  const control::Activate& activate = command.activate;
  StopRunner();
  std::shared_ptr<StageRunner> runner;
  std::shared_ptr<LinkTotals> totals;
  {
    MutexLock lock(mutex_);
    if (runner_ == nullptr || load_key_ != activate.load_key) {
      return MakeError(absl::StatusCode::kFailedPrecondition, "stage",
                       "the one to be activated is not loaded");
    }
    runner = runner_;
    totals = totals_;
  }
  MILLRACE_ASSIGN_OR_RETURN(Links links, Link(command));
  running_epoch_ = activate.epoch;
  quiet_ = std::make_shared<std::atomic<bool>>(false);
  runner->Start(
      activate.epoch, MeteredReceiver(std::move(links.upstream), totals),
      MeteredSender(std::move(links.downstream), totals),
      [emit = options_.emit, quiet = quiet_,
       epoch = activate.epoch](const absl::Status& reason) {
        if (!*quiet) {
          emit(control::StageEnded{
              epoch, reason.ok() ? absl::CancelledError("stopped") : reason});
        }
      });
  return absl::OkStatus();
}

absl::StatusOr<StageHost::Links> StageHost::Link(
    const ActivateCommand& command) const {
  const control::Activate& activate = command.activate;
  transport::Endpoint downstream = activate.downstream_address;
  if (downstream.host == "0.0.0.0" || downstream.host == "::") {
    downstream.host = options_.coordinator_host;
  }
  MILLRACE_RETURN_IF_ERROR(
      transport::RequireTrustedLink(downstream, options_.insecure));
  // Both at once: in a ring every end waits for the next.
  absl::StatusOr<std::shared_ptr<transport::Channel>> dialed;
  std::thread dialer([&]() noexcept {
    dialed = transport::DialTcp(downstream, TcpOf(activate, false),
                                activate.timeout, command.cancelled.get());
    if (!dialed.ok()) {
      *command.cancelled = true;  // no use in waiting for the other end
    }
  });
  absl::StatusOr<std::shared_ptr<transport::Channel>> accepted =
      options_.listener->Accept(TcpOf(activate, true), activate.timeout,
                                command.cancelled.get());
  dialer.join();
  if (!dialed.ok()) {
    return WithObject(dialed.status(), "link to the downstream stage");
  }
  if (!accepted.ok()) {
    return WithObject(accepted.status(), "link from the upstream stage");
  }
  return Links{
      transport::MakeFrameReceiver(*std::move(accepted),
                                   LinkOf(activate, true)),
      transport::MakeFrameSender(*std::move(dialed), LinkOf(activate, false))};
}

}  // namespace millrace::worker
