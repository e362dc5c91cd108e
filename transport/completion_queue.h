#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "transport/channel.h"

namespace millrace::transport {

// A callback of a channel with what it will be told.
struct Completion {
  // Exactly one of the two callbacks is set.
  Channel::SendCallback send;
  Channel::ReceiveCallback receive;
  absl::Status status;
  int64_t bytes = 0;  // receive, when status is OK
  std::unique_ptr<FrameBuffer> buffer;

  void Run();
};

// Completions on their way to the one thread that runs them, in order. Bounded
// by what the channels behind it may have outstanding. Two vectors of that
// capacity are swapped, so that nothing is allocated however far one thread
// gets ahead of the other. Any thread may add.
class CompletionQueue {
 public:
  // `outstanding`: completions that may wait at once; more are taken, at the
  // price of an allocation.
  explicit CompletionQueue(size_t outstanding) : outstanding_(outstanding) {
    pending_.reserve(outstanding);
  }
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  void Add(Completion completion) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets RunUntilStopped return once everything added before has run.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // The body of the thread: sleeps while there is nothing to do.
  void RunUntilStopped() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // False when stopped and drained.
  bool Take(std::vector<Completion>& batch) ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t outstanding_;
  Mutex mutex_;
  CondVar not_empty_;
  std::vector<Completion> pending_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace::transport
