#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/channel.h"
#include "transport/tcp/tcp_handshake.h"

namespace millrace::transport {

// Measuring a link over the channel that frames of a pipeline take. One end
// meters, the other answers; what goes between them stands in README.md.

// One value a round, in the order of the rounds; equally many of each.
struct LinkRounds {
  std::vector<double> bandwidth_out;  // bytes per second, > 0
  std::vector<double> bandwidth_in;
  std::vector<double> latency_s;  // half of a small round trip, > 0
};
inline constexpr int kLinkRoundsMax = 16;

// Both ends' options but the token.
TcpLinkOptions MeteredLink(const LinkToken& token);

// Measures `rounds` (1 to kLinkRoundsMax) times, fewer on a link so slow that
// `time` ends before, and closes the channel. kDeadlineExceeded: not even one
// round in twice the time, as of a peer that says nothing; kDataLoss: the peer
// answers something else; kCancelled soon after `cancelled`.
absl::StatusOr<LinkRounds> MeterLink(std::shared_ptr<Channel> channel,
                                     int rounds, absl::Duration time,
                                     const std::atomic<bool>& cancelled);

// The other end: answers until the meter closes the channel, or for `time`.
// Why it ended; never holds more than a window of frames.
absl::Status AnswerMeter(std::shared_ptr<Channel> channel, absl::Duration time,
                         const std::atomic<bool>& cancelled);

}  // namespace millrace::transport
