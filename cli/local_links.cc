#include "cli/local_links.h"

#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "transport/inproc/inproc_channel.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::cli {
namespace {

using ChannelPair = std::pair<std::shared_ptr<transport::Channel>,
                              std::shared_ptr<transport::Channel>>;

constexpr absl::Duration kLoopbackTimeout = absl::Seconds(10);

// Dials its own listener: the frames then take the road they take between
// machines.
absl::StatusOr<ChannelPair> MakeTcpPair(transport::TcpListener& listener,
                                        const transport::LinkOptions& options,
                                        uint32_t segment) {
  transport::TcpLinkOptions link;
  link.epoch = options.epoch;
  link.segment = segment;
  link.token = transport::MakeLinkToken();
  link.frame_bytes_max = options.limits.FrameBytesMax();
  link.window = options.window;
  absl::StatusOr<std::shared_ptr<transport::Channel>> from =
      absl::UnknownError("not dialed");
  std::thread dialer([&] {
    from = transport::DialTcp(listener.endpoint(), link, kLoopbackTimeout);
  });
  absl::StatusOr<std::shared_ptr<transport::Channel>> to =
      listener.Accept(link, kLoopbackTimeout);
  dialer.join();
  MILLRACE_RETURN_IF_ERROR(from.status());
  MILLRACE_RETURN_IF_ERROR(to.status());
  return ChannelPair(*std::move(from), *std::move(to));
}

}  // namespace

absl::StatusOr<std::vector<LocalLink>> MakeLocalLinks(
    const PipelineConfig& pipeline, uint64_t epoch, bool tcp) {
  std::unique_ptr<transport::TcpListener> listener;
  if (tcp) {
    MILLRACE_ASSIGN_OR_RETURN(listener,
                              transport::TcpListener::Listen({"127.0.0.1", 0}));
  }
  std::vector<LocalLink> links;
  const size_t count = pipeline.stages.size() + 1;
  for (size_t i = 0; i < count; ++i) {
    const transport::LinkOptions options =
        MakeLinkOptions(pipeline, epoch, tcp, i == 0 || i + 1 == count);
    ChannelPair pair;
    if (tcp) {
      MILLRACE_ASSIGN_OR_RETURN(
          pair, MakeTcpPair(*listener, options, static_cast<uint32_t>(i)));
    } else {
      pair = transport::MakeInProcPair(
          {.frame_bytes_max = options.limits.FrameBytesMax(),
           .window = options.window});
    }
    links.push_back(
        {transport::MakeFrameSender(std::move(pair.first), options),
         transport::MakeFrameReceiver(std::move(pair.second), options)});
  }
  return links;
}

}  // namespace millrace::cli
