#include "coordinator/engine/pipeline_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace millrace::coordinator {

absl::StatusOr<std::unique_ptr<PipelineEngine>> PipelineEngine::Create(
    Options options) {
  MILLRACE_RETURN_IF_ERROR(options.core.Validate());
  return std::unique_ptr<PipelineEngine>(
      new PipelineEngine(std::move(options)));
}

PipelineEngine::PipelineEngine(Options options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? options_.clock : &system_clock_),
      num_microbatches_(options_.core.WithDefaults().microbatches),
      core_(options_.core) {
  const auto slots = static_cast<size_t>(options_.core.Slots());
  notices_.reserve(2 * slots);
  deliveries_.reserve(2 * slots);
  loop_ = std::thread([this] { Loop(); });
  receiver_ = std::thread([this] { Receive(); });
}

PipelineEngine::~PipelineEngine() {
  const absl::Status reason = absl::CancelledError("the server has stopped");
  {
    MutexLock lock(mutex_);
    core_.StopIntake();
    core_.FailAll(Now(), reason);
    stopping_ = true;
  }
  work_.NotifyAll();
  link_up_.NotifyAll();
  loop_.join();
  DropLink(nullptr, reason);
  receiver_.join();
}

absl::Status PipelineEngine::Connect(
    uint64_t epoch, std::unique_ptr<transport::FrameSender> sender,
    std::unique_ptr<transport::FrameReceiver> receiver) {
  auto link = std::make_shared<Link>();
  link->epoch = epoch;
  link->sender = std::move(sender);
  link->receiver = std::move(receiver);
  DropLink(nullptr, MakeError(absl::StatusCode::kUnavailable, "pipeline",
                              "its stages were started anew"));
  {
    MutexLock lock(mutex_);
    if (stopping_ || link_ != nullptr || epoch <= core_.epoch()) {
      return MakeError(
          absl::StatusCode::kAborted, "pipeline",
          absl::StrCat("epoch ", epoch, " is not newer than ", core_.epoch()));
    }
    link_ = std::move(link);
    core_.Connect(Now(), epoch);
  }
  MILLRACE_LOG(Info) << "pipeline is ready, epoch " << epoch;
  link_up_.NotifyAll();
  work_.NotifyAll();
  return absl::OkStatus();
}

void PipelineEngine::Disconnect(const absl::Status& reason) {
  DropLink(nullptr, reason);
}

bool PipelineEngine::DropLink(const Link* link, const absl::Status& reason) {
  std::shared_ptr<Link> dropped;
  {
    MutexLock lock(mutex_);
    if (link != nullptr && link_.get() != link) {
      return false;
    }
    dropped = std::move(link_);
    link_ = nullptr;
    core_.Disconnect(Now(), reason);
  }
  work_.NotifyAll();
  if (dropped == nullptr) {
    return false;
  }
  LogLine(absl::IsCancelled(reason) ? LogLevel::kInfo : LogLevel::kWarning,
          __FILE__,
          absl::StrCat("pipeline is down, epoch ", dropped->epoch, ": ",
                       reason.message()));
  dropped->sender->Close(reason);
  dropped->receiver->Close(reason);
  return true;
}

absl::StatusOr<RequestId> PipelineEngine::Submit(
    GenerateRequest request, std::shared_ptr<RequestObserver> observer) {
  RequestId id = 0;
  {
    MutexLock lock(mutex_);
    MILLRACE_ASSIGN_OR_RETURN(id, core_.Submit(Now(), std::move(request)));
    observers_.emplace(id, std::move(observer));
  }
  work_.NotifyAll();
  return id;
}

void PipelineEngine::Cancel(RequestId id) {
  {
    MutexLock lock(mutex_);
    core_.Cancel(Now(), id);
  }
  work_.NotifyAll();
}

EngineSnapshot PipelineEngine::Snapshot() const {
  EngineSnapshot snapshot;
  {
    MutexLock lock(mutex_);
    core_.FillSnapshot(snapshot);
    if (link_ != nullptr && link_->broken) {
      snapshot.ready = false;
      snapshot.not_ready_reason = "a link to the stages is broken";
    }
  }
  if (options_.stages != nullptr) {
    snapshot.stages = options_.stages();
  }
  return snapshot;
}

void PipelineEngine::Drain(absl::Duration deadline) {
  const absl::Duration end = Now() + deadline;
  MutexLock lock(mutex_);
  core_.StopIntake();
  while (core_.num_requests() > 0 && Now() < end) {
    delivered_.WaitFor(mutex_, std::min(end - Now(), absl::Hours(1)));
  }
  core_.FailAll(Now(), absl::CancelledError(
                           "the server shut down before the answer was done"));
  work_.NotifyAll();
  while (!observers_.empty() || delivering_) {
    delivered_.Wait(mutex_);
  }
}

void PipelineEngine::Loop() noexcept {
  while (AwaitWork()) {
    SendFrames();
    Deliver();
  }
}

bool PipelineEngine::AwaitWork() {
  MutexLock lock(mutex_);
  for (;;) {
    const absl::Duration now = Now();
    const std::optional<absl::Duration> deadline = core_.NextDeadline();
    if (deadline && *deadline <= now) {
      core_.TimePassed(now);
    }
    frame_link_ = PollFrameLocked();
    CollectLocked();
    if (frame_link_ != nullptr || !deliveries_.empty()) {
      return true;
    }
    if (stopping_) {
      return false;
    }
    if (deadline && *deadline > now) {
      work_.WaitFor(mutex_, *deadline - now);
    } else if (!deadline) {
      work_.Wait(mutex_);
    }
  }
}

std::shared_ptr<PipelineEngine::Link> PipelineEngine::PollFrameLocked() {
  if (link_ == nullptr || link_->broken || !core_.PollFrame(Now(), frame_)) {
    return nullptr;
  }
  return link_;
}

// Frames leave before observers are called: the stages wait for them. At most
// N in a row, so that observers are not kept waiting by a fast pipeline; a
// micro-batch that comes back meanwhile takes the next turn.
void PipelineEngine::SendFrames() {
  int64_t turns = num_microbatches_;
  while (frame_link_ != nullptr) {
    const std::shared_ptr<Link> link = std::move(frame_link_);
    if (absl::Status status = link->sender->Send(frame_); !status.ok()) {
      Break(*link, status);
      return;
    }
    if (--turns > 0) {
      MutexLock lock(mutex_);
      frame_link_ = PollFrameLocked();
    }
  }
}

void PipelineEngine::Break(Link& link, const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    link.broken = true;
  }
  // The receiver thread takes it from here.
  link.receiver->Close(status);
}

void PipelineEngine::CollectLocked() {
  core_.TakeNotices(notices_);
  for (Notice& notice : notices_) {
    const auto found = observers_.find(notice.id);
    if (found == observers_.end()) {
      continue;
    }
    Delivery& delivery = deliveries_.emplace_back();
    if (std::holds_alternative<FinishReason>(notice.what) ||
        std::holds_alternative<absl::Status>(notice.what)) {
      delivery.observer = std::move(found->second);
      observers_.erase(found);
    } else {
      delivery.observer = found->second;
    }
    delivery.notice = std::move(notice);
  }
  notices_.clear();
  delivering_ = !deliveries_.empty();
}

namespace {

void Call(RequestObserver& observer, const Notice& notice) {
  if (const auto* token = std::get_if<TokenEvent>(&notice.what)) {
    observer.OnToken(*token);
  } else if (const auto* score = std::get_if<ScoreEvent>(&notice.what)) {
    observer.OnPromptScore(*score);
  } else if (const auto* reason = std::get_if<FinishReason>(&notice.what)) {
    observer.OnFinish(*reason);
  } else if (const auto* error = std::get_if<absl::Status>(&notice.what)) {
    observer.OnError(*error);
  } else {
    observer.OnStart();
  }
}

}  // namespace

void PipelineEngine::Deliver() {
  for (const Delivery& delivery : deliveries_) {
    Call(*delivery.observer, delivery.notice);
  }
  deliveries_.clear();
  {
    MutexLock lock(mutex_);
    delivering_ = false;
  }
  delivered_.NotifyAll();
}

void PipelineEngine::Receive() noexcept {
  while (const std::shared_ptr<Link> link = AwaitLink()) {
    LinkLost(link, Pump(link));
  }
}

std::shared_ptr<PipelineEngine::Link> PipelineEngine::AwaitLink() {
  MutexLock lock(mutex_);
  while (link_ == nullptr && !stopping_) {
    link_up_.Wait(mutex_);
  }
  return stopping_ ? nullptr : link_;
}

// Returns why there will be no more frames.
absl::Status PipelineEngine::Pump(const std::shared_ptr<Link>& link) {
  // Nothing depends on this; Close ends the wait at once.
  constexpr absl::Duration kWait = absl::Minutes(10);
  transport::Frame frame;
  for (;;) {
    absl::Status status = link->receiver->Next(kWait, frame);
    if (absl::IsDeadlineExceeded(status)) {
      continue;
    }
    if (!status.ok()) {
      return status;
    }
    {
      MutexLock lock(mutex_);
      if (link_ != link) {
        return absl::AbortedError("the link was replaced");
      }
      core_.FrameReturned(Now(), frame);
    }
    work_.NotifyAll();
  }
}

void PipelineEngine::LinkLost(const std::shared_ptr<Link>& link,
                              const absl::Status& observed) {
  {
    MutexLock lock(mutex_);
    if (stopping_ || link_ != link) {
      return;
    }
    link->broken = true;
  }
  const absl::Status reason =
      options_.explain_loss != nullptr
          ? options_.explain_loss(observed)
          : MakeError(absl::StatusCode::kUnavailable, "pipeline",
                      absl::StrCat("the link from stage '",
                                   options_.core.stages.back().name,
                                   "' was lost: ", observed.message()));
  if (DropLink(link.get(), reason) && options_.on_link_lost != nullptr) {
    options_.on_link_lost(link->epoch, reason);
  }
}

}  // namespace millrace::coordinator
