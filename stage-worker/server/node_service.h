#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/node_messages.h"
#include "transport/endpoint.h"

namespace millrace::worker {

// Answers `probe`, `check` and `plan` on a port of its own, whether or not a
// coordinator has assigned the node anything. One measurement at a time; calls
// in all are few and bounded in time. Any thread.
class NodeService {
 public:
  struct Options {
    transport::Endpoint listen;  // port 0: any free one
    bool insecure = false;       // lets this and peers be off loopback
    // From the service's threads, several at once. An empty one: not offered.
    std::function<control::NodeDescription()> describe;
    std::function<absl::StatusOr<control::ModelDescription>(
        const std::string& model)>
        find_model;
    std::function<absl::StatusOr<control::NodeRates>()> measure;
  };
  // UsageError: an address off loopback without `insecure`; kUnavailable: in
  // use or not ours.
  static absl::StatusOr<std::unique_ptr<NodeService>> Start(Options options);
  // Ends what is under way but a measurement of this node, for which it waits.
  virtual ~NodeService() = default;

  // Where it really listens.
  [[nodiscard]] virtual const transport::Endpoint& endpoint() const = 0;
};

}  // namespace millrace::worker
