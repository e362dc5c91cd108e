#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace millrace::transport {

// Frames that one end may still send: the peer's posted receive buffers.
// Owned by a channel; its loop thread only. Pure: no I/O, no clock.
// Empty: TryTake returns false and the caller parks the frame.
// A grant past the window is kDataLoss: the peer is broken, close the channel.
class CreditWindow {
 public:
  // `window`: credits that the peer may have granted and not seen used.
  explicit CreditWindow(uint32_t window) : window_(window) {}

  [[nodiscard]] bool TryTake() {
    if (available_ == 0) {
      return false;
    }
    --available_;
    return true;
  }
  // `credits` more from the peer; any value may come off the wire.
  [[nodiscard]] absl::Status Grant(uint32_t credits);

  [[nodiscard]] uint32_t available() const { return available_; }
  [[nodiscard]] uint32_t window() const { return window_; }

 private:
  const uint32_t window_;
  uint32_t available_ = 0;
};

}  // namespace millrace::transport
