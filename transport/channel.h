#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace millrace::transport {

// A frame-sized, 64-byte aligned block of memory. Made by Channel::NewBuffer,
// registered with its device where there is one.
class FrameBuffer {
 public:
  virtual ~FrameBuffer() = default;
  // Whole capacity; at least the channel's frame_bytes_max().
  [[nodiscard]] virtual absl::Span<std::byte> bytes() = 0;
};

// One direction-less link between two neighbours of the ring; frames stay
// whole and in order. Owned by the side that uses it. Post* and Close from any
// one thread at a time. Callbacks run on the channel's own thread, exactly once
// per post, never inline in the call that registered them, never under a lock,
// also on close (then with the reason). A buffer belongs to the channel from
// post to callback.
class Channel {
 public:
  // OK with the number of bytes received, or why there will be none.
  using ReceiveCallback = std::function<void(
      absl::StatusOr<int64_t> bytes, std::unique_ptr<FrameBuffer> buffer)>;
  using SendCallback = std::function<void(absl::Status status,
                                          std::unique_ptr<FrameBuffer> buffer)>;

  virtual ~Channel() = default;

  [[nodiscard]] virtual int64_t frame_bytes_max() const = 0;
  virtual std::unique_ptr<FrameBuffer> NewBuffer() = 0;

  // Queues the first `bytes` of the buffer. Frames beyond the peer's window
  // wait inside the channel; at most `window` posts may be outstanding, one
  // more completes with kResourceExhausted.
  virtual void PostSend(std::unique_ptr<FrameBuffer> buffer, int64_t bytes,
                        SendCallback done) = 0;
  // Buffers are filled in the order of posting; each posted buffer is one
  // credit for the peer.
  virtual void PostReceive(std::unique_ptr<FrameBuffer> buffer,
                           ReceiveCallback done) = 0;

  // Completes everything outstanding with `reason`, both sides. Idempotent.
  virtual void Close(absl::Status reason) = 0;
};

}  // namespace millrace::transport
