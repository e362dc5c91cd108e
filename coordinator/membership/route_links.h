#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/membership/membership_core.h"
#include "transport/frame_link.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::coordinator {

// The links of one epoch: link i leads to seat i, the last one back to the
// coordinator. Made with fresh tokens.
class RouteLinks {
 public:
  struct Options {
    uint64_t epoch = 0;
    transport::FrameLimits limits;  // columns: hidden size
    uint32_t window = 1;            // of a link from or to the coordinator
    uint32_t stage_window = 1;
    bool checksum = true;
    absl::Duration timeout;  // for all links to be up
  };
  // `stages`: where each seat accepts, in order; `results`: where the
  // coordinator does.
  RouteLinks(const Options& options, std::vector<transport::Endpoint> stages,
             transport::Endpoint results);

  // What seat `index` is told.
  [[nodiscard]] control::Activate ForSeat(size_t index,
                                          const std::string& load_key) const;

  struct Ends {
    std::unique_ptr<transport::FrameSender> sender;
    std::unique_ptr<transport::FrameReceiver> receiver;
  };
  // Dials the first stage and accepts the last one. Blocks; kCancelled soon
  // after `cancelled`.
  [[nodiscard]] absl::StatusOr<Ends> Connect(
      transport::TcpListener& listener,
      const std::atomic<bool>& cancelled) const;

 private:
  [[nodiscard]] bool EndsAtCoordinator(size_t link) const;
  [[nodiscard]] uint32_t WindowOf(size_t link) const;
  // Only the links between stages carry hidden states.
  [[nodiscard]] transport::FrameLimits LimitsOf(size_t link) const;
  [[nodiscard]] transport::TcpLinkOptions TcpOf(size_t link) const;
  [[nodiscard]] transport::LinkOptions LinkOf(size_t link) const;

  const Options options_;
  const std::vector<transport::Endpoint> stages_;
  const transport::Endpoint results_;
  std::vector<transport::LinkToken> tokens_;  // one a link
};

}  // namespace millrace::coordinator
