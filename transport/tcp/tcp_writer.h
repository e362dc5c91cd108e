#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "transport/completion_queue.h"
#include "transport/fixed_ring.h"
#include "transport/flow_control.h"
#include "transport/tcp/tcp_layout.h"

namespace millrace::transport {

// Frames, credits and the close reason on their way into a socket: as many as
// the peer's credits allow go out in one system call. Owned by a channel; loop
// thread only. Holds at most `window` frames.
class TcpWriter {
 public:
  TcpWriter(uint32_t window, uint32_t peer_window);

  void AddFrame(Completion post) { sends_.Push(std::move(post)); }
  void AddCredits(uint32_t credits) { credits_to_grant_ += credits; }
  CreditWindow& credits() { return credits_; }

  // Writes until done or the socket is full; frames that are wholly written
  // are handed to `done`, in order. kUnavailable when the stream is broken.
  // `only_rest`: finishes the batch under way and begins no other.
  absl::Status WriteTo(int socket, const std::string& peer, bool only_rest,
                       const std::function<void(Completion)>& done);
  // Whether a batch is partly written.
  [[nodiscard]] bool mid_batch() const { return part_ < num_parts_; }

  // Writes the close record, as far as the socket takes it. Not mid batch.
  void WriteClose(int socket, const absl::Status& reason);
  // Frames that did not leave, in order.
  [[nodiscard]] bool TakeUnsent(Completion& post);

 private:
  // Frames of one batch. Eight small frames per call already cost less than
  // one system call each; more only delays the completion of the first.
  static constexpr size_t kBatchFrames = 8;
  using Record = std::array<std::byte, RecordLayout::kBytes>;

  void BuildBatch();
  void AddPart(const void* data, size_t bytes);
  // Skips what was written.
  void Advance(size_t bytes);

  FixedRing<Completion> sends_;  // with credit or waiting for it
  FixedRing<Completion> batch_;  // in the batch under way
  CreditWindow credits_;
  uint32_t credits_to_grant_ = 0;
  std::array<Record, kBatchFrames + 1> heads_ = {};
  std::array<iovec, 2 * kBatchFrames + 1> parts_ = {};
  size_t num_parts_ = 0;
  size_t part_ = 0;  // first that is not wholly written
};

}  // namespace millrace::transport
