#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "transport/channel.h"
#include "transport/completion_queue.h"
#include "transport/fixed_ring.h"
#include "transport/tcp/tcp_reader.h"
#include "transport/tcp/tcp_socket.h"
#include "transport/tcp/tcp_writer.h"

namespace millrace::transport {

// A channel over a connected stream whose hellos are done. One loop thread does
// all input and output and runs the callbacks; it sleeps in poll while nothing
// happens. Posts hand their buffers to it under mutex_. Must not be destroyed
// by one of its callbacks.
class TcpChannel final : public Channel, private TcpReader::Sink {
 public:
  struct Options {
    int64_t frame_bytes_max = 0;
    uint32_t window = 4;       // of this end: posts of each kind
    uint32_t peer_window = 4;  // of the other end: bound of its credits
  };
  TcpChannel(Descriptor socket, const Options& options);
  // Closes, waits a moment for the peer to read the reason, joins the loop.
  ~TcpChannel() override;
  TcpChannel(const TcpChannel&) = delete;
  TcpChannel& operator=(const TcpChannel&) = delete;

  [[nodiscard]] int64_t frame_bytes_max() const override {
    return options_.frame_bytes_max;
  }
  std::unique_ptr<FrameBuffer> NewBuffer() override;
  void PostSend(std::unique_ptr<FrameBuffer> buffer, int64_t bytes,
                SendCallback done) override ABSL_LOCKS_EXCLUDED(mutex_);
  void PostReceive(std::unique_ptr<FrameBuffer> buffer,
                   ReceiveCallback done) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(absl::Status reason) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class State {
    kOpen,
    kClosing,    // finishing the record under way, to say why after it
    kLingering,  // ended; waits for the peer to read the reason
    kClosed,     // socket gone; only late posts are answered
  };

  void LoopOnLoop() noexcept;
  bool HasPosted() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes posted receives and grants them once that is due. On the loop.
  void GrantLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves what was posted to the loop's own queues; false when stopping.
  bool TakePostedOnLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void StepOnLoop();
  absl::Status TransferOnLoop();
  absl::Status WriteOnLoop(bool only_rest);
  void BeginCloseOnLoop();
  void EndOnLoop(const absl::Status& reason);
  void FailAllOnLoop(const absl::Status& reason);
  void LingerOnLoop();
  void AwaitOnLoop();
  // Runs the callback, after the post no longer counts.
  void CompleteSendOnLoop(Completion post) ABSL_LOCKS_EXCLUDED(mutex_);
  void CompleteReceiveOnLoop(Completion post) ABSL_LOCKS_EXCLUDED(mutex_);

  // TcpReader::Sink, on the loop.
  absl::Span<std::byte> FrameBegins(int64_t bytes) override;
  void FrameEnds(int64_t bytes) override;
  absl::Status Credits(uint32_t credits) override;

  const Options options_;
  const SystemClock clock_;
  Descriptor socket_;       // loop
  const std::string peer_;  // address, for messages
  WakeEvent wake_;
  // The peer is granted more once it holds fewer credits than this. Half the
  // window saves two of three credit records and the wakes behind them, and
  // never lets a peer run dry that has the other half.
  const uint32_t grant_below_;

  // Loop only.
  State state_ = State::kOpen;
  absl::Duration give_up_at_;       // of kClosing and kLingering
  absl::Status end_;                // why it ended
  bool peer_knows_ = false;         // the peer ended it, or is gone
  FixedRing<Completion> receives_;  // in the order of posting
  TcpReader reader_;
  TcpWriter writer_;
  std::vector<Completion> refused_now_;
  uint32_t credits_to_grant_ = 0;

  Mutex mutex_;
  FixedRing<Completion> posted_sends_ ABSL_GUARDED_BY(mutex_);
  FixedRing<Completion> posted_receives_ ABSL_GUARDED_BY(mutex_);
  std::vector<Completion> refused_ ABSL_GUARDED_BY(mutex_);
  uint32_t sends_outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t receives_outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t peer_credits_ ABSL_GUARDED_BY(mutex_) = 0;  // granted, unused
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // no frame comes any more
  absl::Status close_request_ ABSL_GUARDED_BY(mutex_);  // OK while none
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread loop_;  // last: uses what is above
};

}  // namespace millrace::transport
