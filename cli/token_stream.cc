#include "cli/token_stream.h"

#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "cli/interrupt.h"

namespace millrace::cli {

std::optional<TokenStream::Event> TokenStream::Next(absl::Duration timeout) {
  MutexLock lock(mutex_);
  while (events_.empty()) {
    if (!not_empty_.WaitFor(mutex_, timeout)) {
      break;
    }
  }
  if (events_.empty()) {
    return std::nullopt;
  }
  std::optional<Event> event(std::move(events_.front()));
  events_.pop_front();
  return event;
}

void TokenStream::Push(Event event) {
  {
    MutexLock lock(mutex_);
    events_.push_back(std::move(event));
  }
  not_empty_.NotifyOne();
}

absl::StatusOr<coordinator::FinishReason> RunRequest(
    coordinator::Engine& engine, coordinator::GenerateRequest request,
    const std::function<void(const TokenStream::Event&)>& on_event,
    const std::function<bool()>& should_stop) {
  const auto stream = std::make_shared<TokenStream>();
  MILLRACE_ASSIGN_OR_RETURN(const coordinator::RequestId id,
                            engine.Submit(std::move(request), stream));
  bool cancelled = false;
  bool stopped = false;
  while (true) {
    const std::optional<TokenStream::Event> event = stream->Next(kInterruptLag);
    if (!cancelled && Interrupts() > 0) {
      cancelled = true;
      engine.Cancel(id);
    }
    if (!event.has_value()) {
      continue;
    }
    if (const auto* reason = std::get_if<coordinator::FinishReason>(&*event)) {
      return *reason;
    }
    if (const auto* error = std::get_if<absl::Status>(&*event)) {
      if (stopped && error->code() == absl::StatusCode::kCancelled) {
        return coordinator::FinishReason::kStop;
      }
      return *error;
    }
    if (cancelled || stopped) {
      continue;
    }
    on_event(*event);
    if (should_stop && should_stop()) {
      stopped = true;
      engine.Cancel(id);
    }
  }
}

}  // namespace millrace::cli
