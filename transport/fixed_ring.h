#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"

namespace millrace::transport {

// First in, first out, at most `capacity` elements, allocated once. Pushing
// into a full ring is a bug of the caller. Not thread-safe.
template <typename T>
class FixedRing {
 public:
  explicit FixedRing(size_t capacity) : items_(capacity) {}

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool full() const { return size_ == items_.size(); }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] T& front() {
    MILLRACE_DCHECK(size_ > 0);
    return items_[begin_];
  }

  void Push(T item) {
    MILLRACE_CHECK(size_ < items_.size());
    items_[(begin_ + size_) % items_.size()] = std::move(item);
    ++size_;
  }
  T Pop() {
    MILLRACE_CHECK(size_ > 0);
    T item = std::move(items_[begin_]);
    begin_ = (begin_ + 1) % items_.size();
    --size_;
    return item;
  }

 private:
  std::vector<T> items_;
  size_t begin_ = 0;
  size_t size_ = 0;
};

}  // namespace millrace::transport
