#pragma once

#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "coordinator/engine/engine.h"

namespace millrace::coordinator {

// An engine without a model: tokens are a hash of prompt, answer so far,
// position, seed and choice, so that they depend on nothing else; every running
// sequence gets one in each step. A prompt with bytes beyond ASCII makes it
// write characters of several tokens.
class StubEngine final : public Engine {
 public:
  struct Options {
    int64_t context = 4096;
    int64_t vocab_size = 5000;
    int32_t first_word = 260;  // ids from here on are words
    int64_t running_max = 16;
    int64_t waiting_max = 200;
    absl::Duration step = absl::Milliseconds(2);
    absl::Duration prefill_per_token = absl::ZeroDuration();
  };
  explicit StubEngine(const Options& options);
  ~StubEngine() override;

  absl::StatusOr<RequestId> Submit(
      GenerateRequest request,
      std::shared_ptr<RequestObserver> observer) override;
  void Cancel(RequestId id) override;
  [[nodiscard]] EngineSnapshot Snapshot() const override;
  void Drain(absl::Duration deadline) override;

  // Every request ends with `status` from now on; OK: no longer.
  void FailAll(absl::Status status);
  // Submit and /ready say that the cluster is not ready.
  void SetReady(bool ready);
  // Waits until nothing runs or waits.
  void AwaitIdle();

 private:
  struct Sequence {
    RequestId id = 0;
    GenerateRequest request;
    std::shared_ptr<RequestObserver> observer;
    std::vector<int32_t> tokens;
    absl::Duration prefill_left;
    bool started = false;
    bool cancelled = false;
  };

  void Work() noexcept;
  // One token for `sequence`, or its end; true when it is over.
  bool Step(Sequence& sequence, const absl::Status& failure);
  [[nodiscard]] int32_t NextToken(const Sequence& sequence) const;
  [[nodiscard]] TokenEvent EventFor(const Sequence& sequence,
                                    int32_t token) const;

  const Options options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<Sequence>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Sequence>> running_ ABSL_GUARDED_BY(mutex_);
  std::vector<RequestId> cancelled_ ABSL_GUARDED_BY(mutex_);
  EngineSnapshot snapshot_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  RequestId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace millrace::coordinator
