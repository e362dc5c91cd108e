#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/endpoint.h"

namespace millrace::transport {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { Reset(); }
  Descriptor(Descriptor&& other) noexcept
      : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Reset();
      value_ = std::exchange(other.value_, -1);
    }
    return *this;
  }
  [[nodiscard]] int get() const { return value_; }
  [[nodiscard]] bool valid() const { return value_ >= 0; }
  void Reset();

 private:
  int value_ = -1;
};

// Wakes a thread that polls: writable from any thread, sticky until cleared.
class WakeEvent {
 public:
  WakeEvent();
  [[nodiscard]] int descriptor() const { return event_.get(); }
  void Set();
  void Clear();

 private:
  Descriptor event_;
};

// kUnavailable with the operation, the peer and the text of errno.
absl::Status SocketError(absl::string_view operation, absl::string_view peer,
                         int error);

// A non-blocking listening socket. kUnavailable, also when in use.
absl::StatusOr<Descriptor> ListenSocket(const Endpoint& endpoint);
// Where a socket really listens.
absl::StatusOr<Endpoint> LocalEndpoint(int socket);
// When waiting ends without success: kDeadlineExceeded at `deadline`
// (monotonic), kCancelled soon after `cancelled` (nullable) becomes true.
struct WaitLimit {
  absl::Duration deadline;
  const std::atomic<bool>* cancelled = nullptr;

  [[nodiscard]] absl::Status Check(absl::Duration now) const;
  // For poll: until the deadline, but no longer than cancelling may take.
  [[nodiscard]] int PollTimeout(absl::Duration now) const;
};

// A non-blocking connected socket; tries every address of the name.
absl::StatusOr<Descriptor> ConnectSocket(const Endpoint& endpoint,
                                         const WaitLimit& limit);
// No Nagle; a peer that vanishes without a word is noticed in seconds.
void TuneSocket(int socket);
// Address of the other end, for messages.
std::string PeerName(int socket);

// Waits until `socket` is readable or writable (`events` of poll).
absl::Status AwaitSocket(int socket, short events, const WaitLimit& limit);

}  // namespace millrace::transport
