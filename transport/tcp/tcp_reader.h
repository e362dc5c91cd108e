#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/tcp/tcp_layout.h"

namespace millrace::transport {

// Turns the byte stream of a link into frames, credits and the close reason.
// Owned by a channel; loop thread only. Every length is bounded before use.
class TcpReader {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    // Where a frame of `bytes` goes; empty span with null data: there is no
    // posted buffer. Bounded by frame_bytes_max before.
    virtual absl::Span<std::byte> FrameBegins(int64_t bytes) = 0;
    virtual void FrameEnds(int64_t bytes) = 0;
    virtual absl::Status Credits(uint32_t credits) = 0;
  };

  // `sink` outlives the reader.
  TcpReader(int64_t frame_bytes_max, Sink& sink);

  // Reads what the socket has, within a bound. OK when it would block; the
  // peer's reason when it closed; kUnavailable when the stream ended;
  // kDataLoss for what is not this protocol.
  absl::Status ReadFrom(int socket, const std::string& peer);

  // Takes bytes as if read; for the above and for tests.
  absl::Status Take(absl::Span<const std::byte> bytes);

  // Whether the last error was the peer's word for why it closed.
  [[nodiscard]] bool peer_closed() const { return peer_closed_; }

 private:
  absl::Status BeginRecord();
  absl::Status BeginFrame(uint64_t length);
  absl::Status EndPayload();

  enum class Payload { kNone, kFrame, kClose };

  const int64_t frame_bytes_max_;
  Sink& sink_;
  std::vector<std::byte> staging_;
  std::array<std::byte, RecordLayout::kBytes> head_ = {};
  size_t head_filled_ = 0;
  Payload payload_ = Payload::kNone;
  absl::Span<std::byte> into_;  // where the payload goes
  size_t into_filled_ = 0;
  std::array<std::byte, kCloseMessageBytesMax> close_message_ = {};
  uint32_t close_code_ = 0;
  bool peer_closed_ = false;
};

}  // namespace millrace::transport
