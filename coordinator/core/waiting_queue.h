#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"
#include "coordinator/core/core_config.h"
#include "coordinator/core/sequence.h"

namespace millrace::coordinator {

// Requests that wait for room, first in, first out, bounded in number and
// tokens; borrows them from the core. Full: HasRoom says no and the request is
// refused. Also knows how fast room comes free. Pure.
class WaitingQueue {
 public:
  explicit WaitingQueue(const QueueLimits& limits) : limits_(limits) {}

  [[nodiscard]] bool HasRoom(int64_t positions) const;
  void Push(Sequence* sequence);
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  [[nodiscard]] int64_t size() const {
    return static_cast<int64_t>(queue_.size());
  }
  [[nodiscard]] int64_t tokens() const { return tokens_; }
  [[nodiscard]] Sequence* front() const { return queue_.front(); }
  void PopFront();
  // Wherever it stands; nothing happens when it is not there.
  void Remove(const Sequence* sequence);

  // When the oldest will have waited too long; nothing when none waits.
  [[nodiscard]] std::optional<absl::Duration> Deadline() const;

  // A running request has ended.
  void RecordEnd(absl::Duration now);
  // Seconds until one more request would be admitted at the rate of the last
  // endings, in [1, 600].
  [[nodiscard]] int64_t RetryAfterSeconds(absl::Duration now) const;

 private:
  // Endings that the rate is taken from: few enough to follow a change of
  // load, enough not to jump with single requests.
  static constexpr size_t kEndings = 32;

  const QueueLimits limits_;
  std::deque<Sequence*> queue_;
  int64_t tokens_ = 0;
  std::array<absl::Duration, kEndings> endings_;
  int64_t num_endings_ = 0;
};

}  // namespace millrace::coordinator
