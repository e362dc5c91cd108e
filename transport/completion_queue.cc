#include "transport/completion_queue.h"

namespace millrace::transport {

void Completion::Run() {
  if (send) {
    send(std::move(status), std::move(buffer));
  } else if (status.ok()) {
    receive(bytes, std::move(buffer));
  } else {
    receive(std::move(status), std::move(buffer));
  }
}

void CompletionQueue::Add(Completion completion) {
  {
    MutexLock lock(mutex_);
    pending_.push_back(std::move(completion));
  }
  not_empty_.NotifyOne();
}

void CompletionQueue::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  not_empty_.NotifyOne();
}

bool CompletionQueue::Take(std::vector<Completion>& batch) {
  MutexLock lock(mutex_);
  while (pending_.empty() && !stopped_) {
    not_empty_.Wait(mutex_);
  }
  std::swap(batch, pending_);
  return !batch.empty();
}

void CompletionQueue::RunUntilStopped() {
  std::vector<Completion> batch;
  batch.reserve(outstanding_);
  while (Take(batch)) {
    for (Completion& completion : batch) {
      completion.Run();
    }
    batch.clear();
  }
}

}  // namespace millrace::transport
