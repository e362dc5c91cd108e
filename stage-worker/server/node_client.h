#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/node_messages.h"
#include "transport/endpoint.h"
#include "transport/link_meter.h"

namespace millrace::worker {

// Calls to a node's service. Every call ends within `timeout`, whatever the
// other side does: kUnavailable (nobody there, or no service), or
// kDeadlineExceeded; what does not decode is kInvalidArgument. Errors name the
// address. kCancelled soon after `cancelled`, which outlives the client,
// becomes true. Nothing is retried. Any thread.
class NodeClient {
 public:
  // Does not block.
  static std::unique_ptr<NodeClient> Open(const transport::Endpoint& node,
                                          const std::atomic<bool>& cancelled);
  virtual ~NodeClient() = default;

  virtual absl::StatusOr<control::NodeDescription> Describe(
      absl::Duration timeout) = 0;
  virtual absl::StatusOr<control::ModelDescription> FindModel(
      const std::string& model, absl::Duration timeout) = 0;
  virtual absl::StatusOr<control::NodeRates> MeasureNode(
      absl::Duration timeout) = 0;
  // From that node to another one's service.
  virtual absl::StatusOr<transport::LinkRounds> MeasureLink(
      const transport::Endpoint& peer, absl::Duration timeout) = 0;
  virtual absl::StatusOr<control::OpenedLink> OpenLink(
      absl::Duration timeout) = 0;
};

struct LinkQuestion {
  transport::Endpoint peer;  // of its node service
  bool insecure = false;     // lets the peer be off loopback
  int rounds = 3;
  absl::Duration time = absl::Seconds(2);  // no further round begins after it
};
// Measures the link from this process to a peer; at most twice the time and
// five seconds. UsageError where the peer may not be dialed.
absl::StatusOr<transport::LinkRounds> MeasureLinkTo(
    const LinkQuestion& question, const std::atomic<bool>& cancelled);

}  // namespace millrace::worker
