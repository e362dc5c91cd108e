#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "stage-worker/server/stage_factory.h"

namespace millrace {

// Stages without a model: each adds one to the token of every row, the last one
// returns it as the result. Counts what it is asked for; any thread.
class FakeStageFactory final : public worker::StageFactory {
 public:
  absl::StatusOr<std::unique_ptr<worker::StageRunner>> Create(
      const control::Load& load,
      std::function<void(const worker::LoadProgress&)> progress,
      std::function<bool()> cancelled) override;

  // Makes the next Create fail.
  void FailNext(absl::Status status) {
    MutexLock lock(mutex_);
    failure_ = std::move(status);
  }
  // Makes Create wait until it is cancelled.
  void HangNext() { hang_ = true; }
  int num_created() const { return created_; }

 private:
  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> hang_{false};
  std::atomic<int> created_{0};
};

}  // namespace millrace
