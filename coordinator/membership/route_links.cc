#include "coordinator/membership/route_links.h"

#include <utility>

#include "base/error.h"
#include "base/status_macros.h"

namespace millrace::coordinator {

RouteLinks::RouteLinks(const Options& options,
                       std::vector<transport::Endpoint> stages,
                       transport::Endpoint results)
    : options_(options),
      stages_(std::move(stages)),
      results_(std::move(results)) {
  for (size_t link = 0; link <= stages_.size(); ++link) {
    tokens_.push_back(transport::MakeLinkToken());
  }
}

bool RouteLinks::EndsAtCoordinator(size_t link) const {
  return link == 0 || link == stages_.size();
}

uint32_t RouteLinks::WindowOf(size_t link) const {
  return EndsAtCoordinator(link) ? options_.window : options_.stage_window;
}

transport::FrameLimits RouteLinks::LimitsOf(size_t link) const {
  transport::FrameLimits limits = options_.limits;
  if (EndsAtCoordinator(link)) {
    limits.columns = 0;
  }
  return limits;
}

transport::TcpLinkOptions RouteLinks::TcpOf(size_t link) const {
  return {.epoch = options_.epoch,
          .segment = static_cast<uint32_t>(link),
          .token = tokens_[link],
          .frame_bytes_max = LimitsOf(link).FrameBytesMax(),
          .window = WindowOf(link)};
}

transport::LinkOptions RouteLinks::LinkOf(size_t link) const {
  return {.limits = LimitsOf(link),
          .epoch = options_.epoch,
          .window = WindowOf(link),
          .checksum = options_.checksum};
}

control::Activate RouteLinks::ForSeat(size_t index,
                                      const std::string& load_key) const {
  control::Activate activate;
  activate.epoch = options_.epoch;
  activate.load_key = load_key;
  activate.segment = static_cast<uint32_t>(index);
  activate.upstream_token = tokens_[index];
  activate.downstream_address =
      index + 1 < stages_.size() ? stages_[index + 1] : results_;
  activate.downstream_token = tokens_[index + 1];
  activate.upstream_limits = LimitsOf(index);
  activate.downstream_limits = LimitsOf(index + 1);
  activate.upstream_window = WindowOf(index);
  activate.downstream_window = WindowOf(index + 1);
  activate.timeout = options_.timeout;
  return activate;
}

absl::StatusOr<RouteLinks::Ends> RouteLinks::Connect(
    transport::TcpListener& listener,
    const std::atomic<bool>& cancelled) const {
  const size_t last = stages_.size();
  auto first =
      transport::DialTcp(stages_[0], TcpOf(0), options_.timeout, &cancelled);
  if (!first.ok()) {
    return WithObject(first.status(), "link to the first stage");
  }
  auto results = listener.Accept(TcpOf(last), options_.timeout, &cancelled);
  if (!results.ok()) {
    return WithObject(results.status(), "link from the last stage");
  }
  return Ends{transport::MakeFrameSender(*std::move(first), LinkOf(0)),
              transport::MakeFrameReceiver(*std::move(results), LinkOf(last))};
}

}  // namespace millrace::coordinator
