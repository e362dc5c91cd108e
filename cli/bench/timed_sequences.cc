#include "cli/bench/timed_sequences.h"

#include <memory>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "cli/interrupt.h"

namespace millrace::cli {
namespace {

// Where sequences begin and end: whether all have been submitted, how many have
// not ended, and the first error among them. The engine's thread and one other.
class Progress {
 public:
  // One alone has nobody to wait for.
  explicit Progress(int64_t count) : open_(count == 1), left_(count) {}

  // All are submitted.
  void Open() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    open_ = true;
    opened_.NotifyAll();
  }
  void AwaitOpen() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    while (!open_) {
      opened_.Wait(mutex_);
    }
  }

  void Add(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    --left_;
    status_.Update(status);
    if (left_ == 0) {
      all_.NotifyAll();
    }
  }
  // Whether all have ended before `timeout` passed.
  bool Await(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (left_ > 0) {
      all_.WaitFor(mutex_, timeout);
    }
    return left_ == 0;
  }
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  mutable Mutex mutex_;
  CondVar all_;
  CondVar opened_;
  bool open_ ABSL_GUARDED_BY(mutex_);
  int64_t left_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// Notes times on the engine's thread; read once all have ended.
class Timer final : public coordinator::RequestObserver {
 public:
  Timer(std::shared_ptr<Progress> progress, int64_t tokens_max)
      : progress_(std::move(progress)) {
    times_.tokens.reserve(static_cast<size_t>(tokens_max));
    times_.submitted = clock_.Monotonic();
  }

  // Holds the engine back until the others are in its queue, too: where this
  // machine is busy, sequences would else run one after another. That takes as
  // long as submitting them.
  void OnStart() override { progress_->AwaitOpen(); }
  void OnToken(const coordinator::TokenEvent& /*event*/) override {
    times_.tokens.push_back(clock_.Monotonic());
  }
  void OnFinish(coordinator::FinishReason /*reason*/) override {
    progress_->Add(absl::OkStatus());
  }
  void OnError(const absl::Status& error) override { progress_->Add(error); }

  [[nodiscard]] SequenceTimes Take() { return std::move(times_); }

 private:
  const SystemClock clock_;
  const std::shared_ptr<Progress> progress_;
  SequenceTimes times_;
};

}  // namespace

absl::StatusOr<std::vector<SequenceTimes>> RunTimed(
    coordinator::Engine& engine,
    const std::vector<std::vector<int32_t>>& prompts, int64_t tokens_max) {
  const auto progress =
      std::make_shared<Progress>(static_cast<int64_t>(prompts.size()));
  std::vector<std::shared_ptr<Timer>> timers;
  std::vector<coordinator::RequestId> ids;
  for (const std::vector<int32_t>& prompt : prompts) {
    coordinator::GenerateRequest request;
    request.prompt = prompt;
    request.tokens_max = tokens_max;
    timers.push_back(std::make_shared<Timer>(progress, tokens_max));
    const absl::StatusOr<coordinator::RequestId> id =
        engine.Submit(std::move(request), timers.back());
    if (id.ok()) {
      ids.push_back(*id);
    } else {
      progress->Add(id.status());
    }
  }
  progress->Open();
  bool cancelled = false;
  while (!progress->Await(kInterruptLag)) {
    if (!cancelled && (Interrupts() > 0 || !progress->status().ok())) {
      cancelled = true;
      for (const coordinator::RequestId id : ids) {
        engine.Cancel(id);
      }
    }
  }
  if (Interrupts() > 0) {
    return absl::CancelledError("interrupted while measuring");
  }
  if (const absl::Status status = progress->status(); !status.ok()) {
    return status;
  }
  std::vector<SequenceTimes> times;
  times.reserve(timers.size());
  for (const std::shared_ptr<Timer>& timer : timers) {
    times.push_back(timer->Take());
  }
  return times;
}

std::vector<std::vector<int32_t>> RandomPrompts(int64_t count, int64_t length,
                                                int64_t vocab_size,
                                                uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(count));
  for (std::vector<int32_t>& prompt : prompts) {
    for (int64_t i = 0; i < length; ++i) {
      prompt.push_back(
          static_cast<int32_t>(random() % static_cast<uint64_t>(vocab_size)));
    }
  }
  return prompts;
}

}  // namespace millrace::cli
