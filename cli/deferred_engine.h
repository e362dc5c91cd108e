#pragma once

#include <memory>

#include "base/mutex.h"
#include "coordinator/engine/engine.h"

namespace millrace::cli {

// Stands for an engine whose model is still being loaded, so that a server can
// listen first: a port in use is told at once, and /ready says what is waited
// for. Any thread.
class DeferredEngine final : public coordinator::Engine {
 public:
  DeferredEngine() = default;
  DeferredEngine(const DeferredEngine&) = delete;
  DeferredEngine& operator=(const DeferredEngine&) = delete;

  // Once. `engine` outlives every use of this one.
  void Set(coordinator::Engine& engine) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<coordinator::RequestId> Submit(
      coordinator::GenerateRequest request,
      std::shared_ptr<coordinator::RequestObserver> observer) override;
  void Cancel(coordinator::RequestId id) override;
  [[nodiscard]] coordinator::EngineSnapshot Snapshot() const override;
  void Drain(absl::Duration deadline) override;

 private:
  // Null while loading.
  [[nodiscard]] coordinator::Engine* engine() const ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  coordinator::Engine* engine_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace millrace::cli
