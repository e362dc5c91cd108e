#include "cli/deferred_engine.h"

#include <utility>

#include "base/error.h"

namespace millrace::cli {
namespace {

constexpr char kLoading[] = "the model is being loaded";

}  // namespace

void DeferredEngine::Set(coordinator::Engine& engine) {
  MutexLock lock(mutex_);
  engine_ = &engine;
}

coordinator::Engine* DeferredEngine::engine() const {
  MutexLock lock(mutex_);
  return engine_;
}

absl::StatusOr<coordinator::RequestId> DeferredEngine::Submit(
    coordinator::GenerateRequest request,
    std::shared_ptr<coordinator::RequestObserver> observer) {
  if (coordinator::Engine* loaded = engine(); loaded != nullptr) {
    return loaded->Submit(std::move(request), std::move(observer));
  }
  return MakeError(absl::StatusCode::kUnavailable, "server", kLoading);
}

void DeferredEngine::Cancel(coordinator::RequestId id) {
  if (coordinator::Engine* loaded = engine(); loaded != nullptr) {
    loaded->Cancel(id);
  }
}

coordinator::EngineSnapshot DeferredEngine::Snapshot() const {
  if (const coordinator::Engine* loaded = engine(); loaded != nullptr) {
    return loaded->Snapshot();
  }
  coordinator::EngineSnapshot snapshot;
  snapshot.not_ready_reason = kLoading;
  return snapshot;
}

void DeferredEngine::Drain(absl::Duration deadline) {
  if (coordinator::Engine* loaded = engine(); loaded != nullptr) {
    loaded->Drain(deadline);
  }
}

}  // namespace millrace::cli
