#include "coordinator/core/waiting_queue.h"

#include <algorithm>
#include <cmath>

namespace millrace::coordinator {

bool WaitingQueue::HasRoom(int64_t positions) const {
  return size() < limits_.requests_max &&
         tokens_ + positions <= limits_.tokens_max;
}

void WaitingQueue::Push(Sequence* sequence) {
  tokens_ += sequence->positions;
  queue_.push_back(sequence);
}

void WaitingQueue::PopFront() {
  tokens_ -= queue_.front()->positions;
  queue_.pop_front();
}

void WaitingQueue::Remove(const Sequence* sequence) {
  const auto place = std::find(queue_.begin(), queue_.end(), sequence);
  if (place != queue_.end()) {
    tokens_ -= sequence->positions;
    queue_.erase(place);
  }
}

std::optional<absl::Duration> WaitingQueue::Deadline() const {
  if (queue_.empty()) {
    return std::nullopt;
  }
  return queue_.front()->queued_at + limits_.age_max;
}

void WaitingQueue::RecordEnd(absl::Duration now) {
  endings_[static_cast<size_t>(num_endings_) % kEndings] = now;
  ++num_endings_;
}

int64_t WaitingQueue::RetryAfterSeconds(absl::Duration now) const {
  constexpr int64_t kSecondsMax = 600;
  // Nothing has ended yet: a guess that sheds load without losing the client.
  constexpr int64_t kSecondsUnknown = 5;
  if (num_endings_ == 0) {
    return kSecondsUnknown;
  }
  const int64_t known =
      std::min<int64_t>(num_endings_, static_cast<int64_t>(kEndings));
  const absl::Duration oldest =
      endings_[static_cast<size_t>(num_endings_ - known) % kEndings];
  const double per_ending =
      absl::ToDoubleSeconds(now - oldest) / static_cast<double>(known);
  const double seconds =
      std::ceil(per_ending * static_cast<double>(size() + 1));
  return static_cast<int64_t>(
      std::clamp(seconds, 1.0, static_cast<double>(kSecondsMax)));
}

}  // namespace millrace::coordinator
