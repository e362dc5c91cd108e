#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace millrace {

// First in, first out, between threads, at most `capacity` elements.
// Any thread. Full: TryPush refuses and leaves the element with the caller,
// Push waits. After Close pushes are refused and Pop drains what is left.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // False when full or closed; `value` is moved from only on success.
  [[nodiscard]] bool TryPush(T&& value) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(mutex_);
      if (closed_ || items_.size() >= capacity_) {
        return false;
      }
      items_.push_back(std::move(value));
    }
    not_empty_.NotifyOne();
    return true;
  }

  // Waits for room. False when closed.
  [[nodiscard]] bool Push(T value) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(mutex_);
      while (!closed_ && items_.size() >= capacity_) {
        not_full_.Wait(mutex_);
      }
      if (closed_) {
        return false;
      }
      items_.push_back(std::move(value));
    }
    not_empty_.NotifyOne();
    return true;
  }

  // Waits for an element; nothing when closed and drained.
  [[nodiscard]] std::optional<T> Pop() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::optional<T> out;
    {
      MutexLock lock(mutex_);
      while (!closed_ && items_.empty()) {
        not_empty_.Wait(mutex_);
      }
      out = TakeLocked();
    }
    not_full_.NotifyOne();
    return out;
  }

  // Waits at most `timeout`; nothing also when that has passed.
  [[nodiscard]] std::optional<T> PopFor(absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::optional<T> out;
    {
      MutexLock lock(mutex_);
      while (!closed_ && items_.empty()) {
        if (!not_empty_.WaitFor(mutex_, timeout)) {
          break;
        }
      }
      out = TakeLocked();
    }
    not_full_.NotifyOne();
    return out;
  }

  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    not_empty_.NotifyAll();
    not_full_.NotifyAll();
  }

  [[nodiscard]] bool closed() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return closed_;
  }

  [[nodiscard]] size_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  std::optional<T> TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (items_.empty()) {
      return std::nullopt;
    }
    std::optional<T> out(std::move(items_.front()));
    items_.pop_front();
    return out;
  }

  const size_t capacity_;
  mutable Mutex mutex_;
  CondVar not_empty_;
  CondVar not_full_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
