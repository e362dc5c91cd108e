#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "coordinator/engine/engine.h"

namespace millrace::cli {

// What happens to one request, for a command that waits for it. The engine's
// thread fills it, one thread reads. Bounded by the request's tokens.
class TokenStream final : public coordinator::RequestObserver {
 public:
  using Event = std::variant<coordinator::TokenEvent, coordinator::ScoreEvent,
                             coordinator::FinishReason, absl::Status>;

  // The next event; nothing when `timeout` passed first.
  std::optional<Event> Next(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnPromptScore(const coordinator::ScoreEvent& event) override {
    Push(event);
  }
  void OnToken(const coordinator::TokenEvent& event) override { Push(event); }
  void OnFinish(coordinator::FinishReason reason) override { Push(reason); }
  void OnError(const absl::Status& error) override { Push(error); }

 private:
  void Push(Event event) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar not_empty_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
};

// Runs one request to its end, telling `on_event` of everything but the end.
// An interrupt, also one from before, cancels it (kCancelled). Returns why it
// finished.
absl::StatusOr<coordinator::FinishReason> RunRequest(
    coordinator::Engine& engine, coordinator::GenerateRequest request,
    const std::function<void(const TokenStream::Event&)>& on_event,
    const std::function<bool()>& should_stop = nullptr);

}  // namespace millrace::cli
