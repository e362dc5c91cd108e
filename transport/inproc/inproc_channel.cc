#include "transport/inproc/inproc_channel.h"

#include <array>
#include <thread>

#include "base/check.h"
#include "base/error.h"
#include "base/mutex.h"
#include "transport/completion_queue.h"
#include "transport/fixed_ring.h"
#include "transport/heap_frame_buffer.h"

namespace millrace::transport {
namespace {

// What both ends share. Lives until both are gone.
class InProcPipe {
 public:
  explicit InProcPipe(const InProcOptions& options)
      : options_(options),
        // Sends and receives of both directions.
        completions_(size_t{4} * options.window),
        directions_{Direction(options.window), Direction(options.window)},
        thread_([this]() noexcept { completions_.RunUntilStopped(); }) {}
  ~InProcPipe() {
    MILLRACE_CHECK(thread_.get_id() != std::this_thread::get_id());
    completions_.Stop();
    thread_.join();
  }
  InProcPipe(const InProcPipe&) = delete;
  InProcPipe& operator=(const InProcPipe&) = delete;

  [[nodiscard]] const InProcOptions& options() const { return options_; }

  void PostSend(int from, Completion post) ABSL_LOCKS_EXCLUDED(mutex_);
  void PostReceive(int to, Completion post) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Frames from one end to the other.
  struct Direction {
    explicit Direction(uint32_t window) : sends(window), receives(window) {}
    FixedRing<Completion> sends;
    FixedRing<Completion> receives;
  };

  // Refuses a post beyond the window or after the end; true when it did.
  bool RefuseLocked(const FixedRing<Completion>& queue, Completion& post)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MatchLocked(Direction& direction) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailAllLocked(FixedRing<Completion>& queue)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const InProcOptions options_;
  CompletionQueue completions_;  // its lock is taken after mutex_
  Mutex mutex_;
  std::array<Direction, 2> directions_ ABSL_GUARDED_BY(mutex_);  // by sender
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK while open
  std::thread thread_;                           // last: uses what is above
};

bool InProcPipe::RefuseLocked(const FixedRing<Completion>& queue,
                              Completion& post) {
  if (!closed_.ok()) {
    post.status = closed_;
  } else if (queue.full()) {
    post.status = MakeError(absl::StatusCode::kResourceExhausted, "channel",
                            "more posts than the window");
  } else {
    return false;
  }
  completions_.Add(std::move(post));
  return true;
}

void InProcPipe::MatchLocked(Direction& direction) {
  while (!direction.sends.empty() && !direction.receives.empty()) {
    Completion send = direction.sends.Pop();
    Completion receive = direction.receives.Pop();
    receive.bytes = send.bytes;
    std::swap(send.buffer, receive.buffer);
    // The receiver first: it is the one that somebody waits for.
    completions_.Add(std::move(receive));
    completions_.Add(std::move(send));
  }
}

void InProcPipe::PostSend(int from, Completion post) {
  MutexLock lock(mutex_);
  Direction& direction = directions_[static_cast<size_t>(from)];
  if (!RefuseLocked(direction.sends, post)) {
    direction.sends.Push(std::move(post));
    MatchLocked(direction);
  }
}

void InProcPipe::PostReceive(int to, Completion post) {
  MutexLock lock(mutex_);
  Direction& direction = directions_[static_cast<size_t>(1 - to)];
  if (!RefuseLocked(direction.receives, post)) {
    direction.receives.Push(std::move(post));
    MatchLocked(direction);
  }
}

void InProcPipe::FailAllLocked(FixedRing<Completion>& queue) {
  while (!queue.empty()) {
    Completion post = queue.Pop();
    post.status = closed_;
    completions_.Add(std::move(post));
  }
}

void InProcPipe::Close(const absl::Status& reason) {
  MILLRACE_CHECK(!reason.ok());
  MutexLock lock(mutex_);
  if (!closed_.ok()) {
    return;
  }
  closed_ = reason;
  for (Direction& direction : directions_) {
    FailAllLocked(direction.receives);
    FailAllLocked(direction.sends);
  }
}

class InProcChannel final : public Channel {
 public:
  InProcChannel(std::shared_ptr<InProcPipe> pipe, int end)
      : pipe_(std::move(pipe)), end_(end) {}
  ~InProcChannel() override {
    pipe_->Close(MakeError(absl::StatusCode::kUnavailable, "channel",
                           "the other end is gone"));
  }
  InProcChannel(const InProcChannel&) = delete;
  InProcChannel& operator=(const InProcChannel&) = delete;

  [[nodiscard]] int64_t frame_bytes_max() const override {
    return pipe_->options().frame_bytes_max;
  }
  std::unique_ptr<FrameBuffer> NewBuffer() override {
    return MakeHeapFrameBuffer(frame_bytes_max());
  }
  void PostSend(std::unique_ptr<FrameBuffer> buffer, int64_t bytes,
                SendCallback done) override {
    MILLRACE_CHECK(bytes >= 0 && bytes <= frame_bytes_max());
    Completion post;
    post.send = std::move(done);
    post.bytes = bytes;
    post.buffer = std::move(buffer);
    pipe_->PostSend(end_, std::move(post));
  }
  void PostReceive(std::unique_ptr<FrameBuffer> buffer,
                   ReceiveCallback done) override {
    Completion post;
    post.receive = std::move(done);
    post.buffer = std::move(buffer);
    pipe_->PostReceive(end_, std::move(post));
  }
  void Close(absl::Status reason) override { pipe_->Close(reason); }

 private:
  const std::shared_ptr<InProcPipe> pipe_;
  const int end_;
};

}  // namespace

std::pair<std::shared_ptr<Channel>, std::shared_ptr<Channel>> MakeInProcPair(
    const InProcOptions& options) {
  auto pipe = std::make_shared<InProcPipe>(options);
  return {std::make_shared<InProcChannel>(pipe, 0),
          std::make_shared<InProcChannel>(pipe, 1)};
}

}  // namespace millrace::transport
