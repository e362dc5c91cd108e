#include "transport/frame_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mutex.h"
#include "transport/fixed_ring.h"

namespace millrace::transport {
namespace {

absl::Status LinkDestroyed() {
  return MakeError(absl::StatusCode::kCancelled, "channel",
                   "its user has gone");
}

// Callbacks hold a plain pointer (a larger capture would allocate per frame);
// the destructor therefore closes the channel and waits for every one of them.
class Receiver final : public FrameReceiver {
 public:
  Receiver(std::shared_ptr<Channel> channel, const LinkOptions& options)
      : channel_(std::move(channel)),
        options_(options),
        ready_(options.window) {
    for (uint32_t i = 0; i < options.window; ++i) {
      Post(channel_->NewBuffer());
    }
  }
  ~Receiver() override {
    channel_->Close(LinkDestroyed());
    MutexLock lock(mutex_);
    while (outstanding_ > 0) {
      changed_.Wait(mutex_);
    }
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  absl::Status Next(absl::Duration timeout, Frame& frame) override;
  void Close(absl::Status reason) override {
    channel_->Close(std::move(reason));
  }
  [[nodiscard]] const LinkCounters& counters() const override {
    return counters_;
  }

 private:
  struct Arrival {
    std::unique_ptr<FrameBuffer> buffer;
    int64_t bytes = 0;
  };

  void Post(std::unique_ptr<FrameBuffer> buffer) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReceive(absl::StatusOr<int64_t> bytes,
                 std::unique_ptr<FrameBuffer> buffer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for an arrival; frames that came before the end are handed out first.
  absl::Status Await(absl::Duration deadline, Arrival& arrival)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CountStale(uint64_t epoch);

  const std::shared_ptr<Channel> channel_;
  const LinkOptions options_;
  const SystemClock clock_;
  LinkCounters counters_;
  std::unique_ptr<FrameBuffer> current_;  // consumer: behind the last frame
  bool stale_logged_ = false;             // consumer

  Mutex mutex_;
  CondVar changed_;
  FixedRing<Arrival> ready_ ABSL_GUARDED_BY(mutex_);
  uint32_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // OK while frames may come
};

void Receiver::Post(std::unique_ptr<FrameBuffer> buffer) {
  {
    MutexLock lock(mutex_);
    ++outstanding_;
  }
  channel_->PostReceive(std::move(buffer),
                        [this](absl::StatusOr<int64_t> bytes,
                               std::unique_ptr<FrameBuffer> returned) {
                          OnReceive(std::move(bytes), std::move(returned));
                        });
}

void Receiver::OnReceive(absl::StatusOr<int64_t> bytes,
                         std::unique_ptr<FrameBuffer> buffer) {
  // Notified under the lock: the destructor may free this object as soon as it
  // can see the last count.
  MutexLock lock(mutex_);
  --outstanding_;
  if (bytes.ok()) {
    ready_.Push({std::move(buffer), *bytes});
  } else if (end_.ok()) {
    end_ = std::move(bytes).status();
  }
  changed_.NotifyOne();
}

absl::Status Receiver::Await(absl::Duration deadline, Arrival& arrival) {
  MutexLock lock(mutex_);
  if (ready_.empty() && end_.ok()) {
    const absl::Duration start = clock_.Monotonic();
    absl::Duration now = start;
    while (ready_.empty() && end_.ok() && now < deadline) {
      changed_.WaitFor(mutex_, std::min(deadline - now, absl::Hours(1)));
      now = clock_.Monotonic();
    }
    counters_.wait_ns += absl::ToInt64Nanoseconds(now - start);
  }
  if (!ready_.empty()) {
    arrival = ready_.Pop();
    return absl::OkStatus();
  }
  if (!end_.ok()) {
    return end_;
  }
  return absl::DeadlineExceededError("no frame came in time");
}

void Receiver::CountStale(uint64_t epoch) {
  counters_.stale_frames += 1;
  if (!stale_logged_) {
    stale_logged_ = true;
    MILLRACE_LOG(Warning) << "dropped a frame of epoch " << epoch
                          << " on a link of epoch " << options_.epoch;
  }
}

absl::Status Receiver::Next(absl::Duration timeout, Frame& frame) {
  const absl::Duration deadline = clock_.Monotonic() + timeout;
  for (;;) {
    if (current_ != nullptr) {
      Post(std::move(current_));
    }
    Arrival arrival;
    if (absl::Status status = Await(deadline, arrival); !status.ok()) {
      return status;
    }
    current_ = std::move(arrival.buffer);
    absl::Status status = DecodeFrame(
        current_->bytes().subspan(0, static_cast<size_t>(arrival.bytes)),
        options_.limits, frame);
    if (!status.ok()) {
      MILLRACE_LOG(Warning) << "closing a link of epoch " << options_.epoch
                            << ": " << status.message();
      Close(status);
      MutexLock lock(mutex_);
      end_ = status;
      return status;
    }
    if (frame.epoch != options_.epoch) {
      CountStale(frame.epoch);
      continue;
    }
    counters_.frames += 1;
    counters_.rows += static_cast<int64_t>(frame.rows.size());
    counters_.bytes += arrival.bytes;
    return absl::OkStatus();
  }
}

class Sender final : public FrameSender {
 public:
  Sender(std::shared_ptr<Channel> channel, const LinkOptions& options)
      : channel_(std::move(channel)), options_(options), free_(options.window) {
    MutexLock lock(mutex_);
    for (uint32_t i = 0; i < options.window; ++i) {
      free_.Push(channel_->NewBuffer());
    }
  }
  ~Sender() override {
    channel_->Close(LinkDestroyed());
    MutexLock lock(mutex_);
    while (free_.size() < options_.window) {
      changed_.Wait(mutex_);
    }
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  absl::Status Send(const Frame& frame) override;
  void Close(absl::Status reason) override {
    channel_->Close(std::move(reason));
  }
  [[nodiscard]] const LinkCounters& counters() const override {
    return counters_;
  }

 private:
  // A free buffer, or why there will be none.
  absl::StatusOr<std::unique_ptr<FrameBuffer>> Take()
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnSent(const absl::Status& status, std::unique_ptr<FrameBuffer> buffer)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<Channel> channel_;
  const LinkOptions options_;
  const SystemClock clock_;
  LinkCounters counters_;

  Mutex mutex_;
  CondVar changed_;
  FixedRing<std::unique_ptr<FrameBuffer>> free_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // OK while frames may leave
};

absl::StatusOr<std::unique_ptr<FrameBuffer>> Sender::Take() {
  MutexLock lock(mutex_);
  if (free_.empty() && end_.ok()) {
    const absl::Duration start = clock_.Monotonic();
    while (free_.empty() && end_.ok()) {
      changed_.Wait(mutex_);
    }
    counters_.wait_ns += absl::ToInt64Nanoseconds(clock_.Monotonic() - start);
  }
  if (!end_.ok()) {
    return end_;
  }
  return free_.Pop();
}

void Sender::OnSent(const absl::Status& status,
                    std::unique_ptr<FrameBuffer> buffer) {
  MutexLock lock(mutex_);
  free_.Push(std::move(buffer));
  if (!status.ok() && end_.ok()) {
    end_ = status;
  }
  changed_.NotifyOne();
}

absl::Status Sender::Send(const Frame& frame) {
  absl::StatusOr<std::unique_ptr<FrameBuffer>> buffer = Take();
  if (!buffer.ok()) {
    return std::move(buffer).status();
  }
  const int64_t bytes =
      EncodeFrame(frame, options_.checksum, (*buffer)->bytes());
  counters_.frames += 1;
  counters_.rows += static_cast<int64_t>(frame.rows.size());
  counters_.bytes += bytes;
  channel_->PostSend(std::move(*buffer), bytes,
                     [this](const absl::Status& status,
                            std::unique_ptr<FrameBuffer> returned) {
                       OnSent(status, std::move(returned));
                     });
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<FrameReceiver> MakeFrameReceiver(
    std::shared_ptr<Channel> channel, const LinkOptions& options) {
  return std::make_unique<Receiver>(std::move(channel), options);
}

std::unique_ptr<FrameSender> MakeFrameSender(std::shared_ptr<Channel> channel,
                                             const LinkOptions& options) {
  return std::make_unique<Sender>(std::move(channel), options);
}

}  // namespace millrace::transport
