#include "transport/tcp/tcp_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "transport/heap_frame_buffer.h"

namespace millrace::transport {
namespace {

// How long an end that closes waits for the record under way to leave, and for
// the peer to read the reason; closing the socket at once would throw both
// away. Loopback and racks need a millisecond; longer only delays shutdown.
constexpr absl::Duration kCloseTimeout = absl::Milliseconds(200);

}  // namespace

TcpChannel::TcpChannel(Descriptor socket, const Options& options)
    : options_(options),
      socket_(std::move(socket)),
      peer_(PeerName(socket_.get())),
      grant_below_(std::max(uint32_t{1}, options.window / 2)),
      receives_(options.window),
      reader_(options.frame_bytes_max, *this),
      writer_(options.window, options.peer_window),
      posted_sends_(options.window),
      posted_receives_(options.window),
      loop_([this]() noexcept { LoopOnLoop(); }) {}

TcpChannel::~TcpChannel() {
  MILLRACE_CHECK(loop_.get_id() != std::this_thread::get_id());
  Close(MakeError(absl::StatusCode::kUnavailable, "channel",
                  "the other end is gone"));
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.Set();
  loop_.join();
}

std::unique_ptr<FrameBuffer> TcpChannel::NewBuffer() {
  return MakeHeapFrameBuffer(options_.frame_bytes_max);
}

void TcpChannel::PostSend(std::unique_ptr<FrameBuffer> buffer, int64_t bytes,
                          SendCallback done) {
  MILLRACE_CHECK(bytes >= 0 && bytes <= options_.frame_bytes_max);
  Completion post;
  post.send = std::move(done);
  post.bytes = bytes;
  post.buffer = std::move(buffer);
  {
    MutexLock lock(mutex_);
    if (sends_outstanding_ < options_.window) {
      ++sends_outstanding_;
      posted_sends_.Push(std::move(post));
    } else {
      refused_.push_back(std::move(post));
    }
  }
  wake_.Set();
}

void TcpChannel::PostReceive(std::unique_ptr<FrameBuffer> buffer,
                             ReceiveCallback done) {
  Completion post;
  post.receive = std::move(done);
  post.buffer = std::move(buffer);
  bool wake = true;
  {
    MutexLock lock(mutex_);
    if (receives_outstanding_ < options_.window) {
      ++receives_outstanding_;
      posted_receives_.Push(std::move(post));
      // While the peer has credits the loop finds the buffer when it next runs.
      wake = ended_ || peer_credits_ < grant_below_;
    } else {
      refused_.push_back(std::move(post));
    }
  }
  if (wake) {
    wake_.Set();
  }
}

void TcpChannel::Close(absl::Status reason) {
  MILLRACE_CHECK(!reason.ok());
  {
    MutexLock lock(mutex_);
    if (!close_request_.ok()) {
      return;
    }
    close_request_ = std::move(reason);
  }
  wake_.Set();
}

void TcpChannel::LoopOnLoop() noexcept {
  for (;;) {
    const bool running = TakePostedOnLoop();
    StepOnLoop();
    // Callbacks of the last step may have posted; those are answered as well.
    // What was posted while this step ended the channel has woken nobody.
    const bool posted = state_ == State::kClosed && HasPosted();
    if (!running && state_ == State::kClosed && !posted) {
      return;
    }
    if (!posted) {
      AwaitOnLoop();
    }
  }
}

void TcpChannel::GrantLocked() {
  while (!posted_receives_.empty()) {
    receives_.Push(posted_receives_.Pop());
    ++credits_to_grant_;
  }
  if (peer_credits_ < grant_below_ && credits_to_grant_ > 0) {
    writer_.AddCredits(credits_to_grant_);
    peer_credits_ += credits_to_grant_;
    credits_to_grant_ = 0;
  }
}

bool TcpChannel::HasPosted() {
  MutexLock lock(mutex_);
  return !posted_sends_.empty() || !posted_receives_.empty() ||
         !refused_.empty();
}

bool TcpChannel::TakePostedOnLoop() {
  wake_.Clear();
  bool stop = false;
  bool close = false;
  {
    MutexLock lock(mutex_);
    while (!posted_sends_.empty()) {
      writer_.AddFrame(posted_sends_.Pop());
    }
    GrantLocked();
    std::swap(refused_now_, refused_);
    stop = stop_;
    close = !close_request_.ok();
  }
  for (Completion& post : refused_now_) {
    post.status = state_ == State::kOpen || state_ == State::kClosing
                      ? MakeError(absl::StatusCode::kResourceExhausted,
                                  "channel", "more posts than the window")
                      : end_;
    post.Run();
  }
  refused_now_.clear();
  if (close && state_ == State::kOpen) {
    BeginCloseOnLoop();
  }
  return !stop;
}

void TcpChannel::StepOnLoop() {
  switch (state_) {
    case State::kOpen:
      if (absl::Status status = TransferOnLoop(); !status.ok()) {
        // Nothing can be said to a peer in the middle of a record.
        peer_knows_ = reader_.peer_closed() || absl::IsUnavailable(status) ||
                      writer_.mid_batch();
        EndOnLoop(status);
      }
      return;
    case State::kClosing: {
      const absl::Status status = WriteOnLoop(/*only_rest=*/true);
      if (!status.ok() || !writer_.mid_batch() ||
          clock_.Monotonic() >= give_up_at_) {
        peer_knows_ = !status.ok() || writer_.mid_batch();
        EndOnLoop(end_);
      }
      return;
    }
    case State::kLingering:
      FailAllOnLoop(end_);
      LingerOnLoop();
      return;
    case State::kClosed:
      FailAllOnLoop(end_);
      return;
  }
}

absl::Status TcpChannel::TransferOnLoop() {
  const absl::Status written = WriteOnLoop(/*only_rest=*/false);
  // Also after a failed write: the peer may have said why it closed.
  absl::Status read = reader_.ReadFrom(socket_.get(), peer_);
  if (!written.ok() && !reader_.peer_closed()) {
    return written;
  }
  MILLRACE_RETURN_IF_ERROR(read);
  {
    MutexLock lock(mutex_);
    GrantLocked();
  }
  // Credits that just came may let parked frames go.
  return WriteOnLoop(/*only_rest=*/false);
}

absl::Status TcpChannel::WriteOnLoop(bool only_rest) {
  return writer_.WriteTo(
      socket_.get(), peer_, only_rest,
      [this](Completion post) { CompleteSendOnLoop(std::move(post)); });
}

void TcpChannel::BeginCloseOnLoop() {
  {
    MutexLock lock(mutex_);
    end_ = close_request_;
    ended_ = true;
  }
  state_ = State::kClosing;
  give_up_at_ = clock_.Monotonic() + kCloseTimeout;
}

void TcpChannel::EndOnLoop(const absl::Status& reason) {
  end_ = reason;
  {
    MutexLock lock(mutex_);
    ended_ = true;
  }
  if (!peer_knows_) {
    writer_.WriteClose(socket_.get(), end_);
  }
  shutdown(socket_.get(), SHUT_WR);
  state_ = State::kLingering;
  give_up_at_ =
      peer_knows_ ? absl::ZeroDuration() : clock_.Monotonic() + kCloseTimeout;
  FailAllOnLoop(end_);
  LingerOnLoop();
}

void TcpChannel::FailAllOnLoop(const absl::Status& reason) {
  while (!receives_.empty()) {
    Completion post = receives_.Pop();
    post.status = reason;
    CompleteReceiveOnLoop(std::move(post));
  }
  Completion post;
  while (writer_.TakeUnsent(post)) {
    post.status = reason;
    CompleteSendOnLoop(std::move(post));
  }
}

void TcpChannel::LingerOnLoop() {
  std::array<std::byte, 4096> discarded;
  ssize_t got = 0;
  while (clock_.Monotonic() < give_up_at_) {
    got = recv(socket_.get(), discarded.data(), discarded.size(), 0);
    if (got <= 0) {
      break;
    }
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR) &&
      clock_.Monotonic() < give_up_at_) {
    return;
  }
  socket_.Reset();
  state_ = State::kClosed;
}

void TcpChannel::AwaitOnLoop() {
  int timeout = -1;
  if (state_ == State::kClosing || state_ == State::kLingering) {
    const absl::Duration left =
        std::max(give_up_at_ - clock_.Monotonic(), absl::ZeroDuration());
    timeout = static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
  }
  short events = state_ == State::kClosing ? 0 : POLLIN;
  if (writer_.mid_batch() && state_ != State::kLingering) {
    events |= POLLOUT;
  }
  pollfd items[2] = {{wake_.descriptor(), POLLIN, 0},
                     {socket_.get(), events, 0}};
  // Errors and timeouts are seen by the next step.
  poll(items, socket_.valid() ? 2 : 1, timeout);
}

void TcpChannel::CompleteSendOnLoop(Completion post) {
  {
    MutexLock lock(mutex_);
    --sends_outstanding_;
  }
  post.Run();
}

void TcpChannel::CompleteReceiveOnLoop(Completion post) {
  {
    MutexLock lock(mutex_);
    --receives_outstanding_;
  }
  post.Run();
}

absl::Span<std::byte> TcpChannel::FrameBegins(int64_t bytes) {
  {
    MutexLock lock(mutex_);
    if (peer_credits_ == 0) {
      return {};
    }
  }
  return receives_.front().buffer->bytes().subspan(0,
                                                   static_cast<size_t>(bytes));
}

void TcpChannel::FrameEnds(int64_t bytes) {
  Completion post = receives_.Pop();
  post.bytes = bytes;
  {
    MutexLock lock(mutex_);
    --peer_credits_;
  }
  CompleteReceiveOnLoop(std::move(post));
}

absl::Status TcpChannel::Credits(uint32_t credits) {
  return writer_.credits().Grant(credits);
}

}  // namespace millrace::transport
