#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/channel.h"
#include "transport/frame.h"

namespace millrace::transport {

// Counters of one end of a link; read by metrics from any thread.
struct LinkCounters {
  std::atomic<int64_t> frames{0};
  std::atomic<int64_t> rows{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> wait_ns{0};       // for input, or for a credit
  std::atomic<int64_t> stale_frames{0};  // received, of another epoch
};

// Blocking receive side for a step loop: keeps `window` receive buffers posted
// and decodes frames of `epoch`; frames of another epoch are dropped, counted
// and logged once. One consumer thread; Close from any thread.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  // Waits for the next frame and decodes it into `frame`, whose tensors stay
  // valid until the next call. kDeadlineExceeded after `timeout`; any other
  // error is final: the channel is closed.
  virtual absl::Status Next(absl::Duration timeout, Frame& frame) = 0;
  virtual void Close(absl::Status reason) = 0;
  [[nodiscard]] virtual const LinkCounters& counters() const = 0;
};

// Blocking send side: encodes into a free buffer, waiting for one (that is, for
// credit) when all are under way. One producer thread; Close from any thread.
class FrameSender {
 public:
  virtual ~FrameSender() = default;
  virtual absl::Status Send(const Frame& frame) = 0;
  virtual void Close(absl::Status reason) = 0;
  [[nodiscard]] virtual const LinkCounters& counters() const = 0;
};

struct LinkOptions {
  FrameLimits limits;
  uint64_t epoch = 0;
  uint32_t window = 4;   // frames under way per direction
  bool checksum = true;  // off in process
};

std::unique_ptr<FrameReceiver> MakeFrameReceiver(
    std::shared_ptr<Channel> channel, const LinkOptions& options);
std::unique_ptr<FrameSender> MakeFrameSender(std::shared_ptr<Channel> channel,
                                             const LinkOptions& options);

}  // namespace millrace::transport
