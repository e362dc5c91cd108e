#pragma once

#include <atomic>
#include <thread>

#include "cli/interrupt.h"

namespace millrace::cli {

// A flag that becomes true soon after an interrupt, for calls that take one.
// Owns the thread that waits for it.
class InterruptFlag {
 public:
  InterruptFlag()
      : thread_([this]() noexcept {
          while (!ended_.load(std::memory_order_relaxed)) {
            if (AwaitInterrupt(absl::Milliseconds(100))) {
              flag_.store(true, std::memory_order_relaxed);
              return;
            }
          }
        }) {}
  ~InterruptFlag() {
    ended_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  [[nodiscard]] const std::atomic<bool>& flag() const { return flag_; }

 private:
  std::atomic<bool> ended_{false};
  std::atomic<bool> flag_{false};
  std::thread thread_;  // last: uses what is above
};

}  // namespace millrace::cli
