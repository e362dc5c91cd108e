#include "stage-worker/server/node_client.h"

#include <grpcpp/grpcpp.h>

#include <functional>
#include <optional>
#include <utility>

#include "base/bounded_queue.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "millrace/control/v1/node.grpc.pb.h"
#include "proto/error_codec.h"
#include "proto/node_codec.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::worker {
namespace {

namespace v1 = control::v1;

constexpr int kMessageBytesMax = 64 << 10;
constexpr absl::Duration kCancelLag = absl::Milliseconds(100);
// Asking for a link and dialing it, each.
constexpr absl::Duration kLinkUpTimeout = absl::Seconds(2);

std::shared_ptr<grpc::Channel> MakeChannel(const transport::Endpoint& node) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  return grpc::CreateCustomChannel(transport::FormatEndpoint(node),
                                   grpc::InsecureChannelCredentials(),
                                   arguments);
}

class GrpcNodeClient final : public NodeClient {
 public:
  GrpcNodeClient(const transport::Endpoint& node,
                 const std::atomic<bool>& cancelled)
      : name_(transport::FormatEndpoint(node)),
        cancelled_(cancelled),
        stub_(v1::Node::NewStub(MakeChannel(node))) {}

  absl::StatusOr<control::NodeDescription> Describe(
      absl::Duration timeout) override {
    return Call<v1::NodeDescription>(&v1::Node::Stub::async::Describe,
                                     v1::DescribeRequest(), timeout);
  }
  absl::StatusOr<control::ModelDescription> FindModel(
      const std::string& model, absl::Duration timeout) override {
    v1::FindModelRequest request;
    request.set_model(model);
    return Call<v1::ModelDescription>(&v1::Node::Stub::async::FindModel,
                                      request, timeout);
  }
  absl::StatusOr<control::NodeRates> MeasureNode(
      absl::Duration timeout) override {
    return Call<v1::NodeRates>(&v1::Node::Stub::async::MeasureNode,
                               v1::MeasureNodeRequest(), timeout);
  }
  absl::StatusOr<transport::LinkRounds> MeasureLink(
      const transport::Endpoint& peer, absl::Duration timeout) override {
    v1::MeasureLinkRequest request;
    request.set_peer(transport::FormatEndpoint(peer));
    return Call<v1::LinkRates>(&v1::Node::Stub::async::MeasureLink, request,
                               timeout);
  }
  absl::StatusOr<control::OpenedLink> OpenLink(
      absl::Duration timeout) override {
    return Call<v1::OpenedLink>(&v1::Node::Stub::async::OpenLink,
                                v1::OpenLinkRequest(), timeout);
  }

 private:
  using Done = std::function<void(grpc::Status)>;
  template <typename Request, typename Response>
  using Method = void (v1::Node::Stub::async::*)(grpc::ClientContext*,
                                                 const Request*, Response*,
                                                 Done);

  // What the answer decodes to.
  template <typename Response, typename Request>
  auto Call(Method<Request, Response> method, const Request& request,
            absl::Duration timeout) -> decltype(control::Decode(Response())) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    Response response;
    BoundedQueue<grpc::Status> done(1);
    (stub_->async()->*method)(&context, &request, &response,
                              [&done](const grpc::Status& status) {
                                (void)done.TryPush(grpc::Status(status));
                              });
    // The callback comes in any case, by the deadline at the latest.
    std::optional<grpc::Status> status;
    while (!(status = done.PopFor(kCancelLag)).has_value()) {
      if (cancelled_.load(std::memory_order_relaxed)) {
        context.TryCancel();
      }
    }
    if (!status->ok()) {
      return ErrorOf(*status);
    }
    auto decoded = control::Decode(response);
    if (!decoded.ok()) {
      return WithObject(decoded.status(), name_);
    }
    return decoded;
  }

  [[nodiscard]] absl::Status ErrorOf(const grpc::Status& status) const {
    if (cancelled_.load(std::memory_order_relaxed)) {
      return absl::CancelledError("interrupted while asking a node");
    }
    v1::Error error;
    if (!status.error_details().empty() &&
        error.ParseFromString(status.error_details())) {
      return control::DecodeError(error);
    }
    return MakeError(static_cast<absl::StatusCode>(status.error_code()), name_,
                     Printable(status.error_message(), 1000),
                     "is a millrace of this version listening there?");
  }

  const std::string name_;
  const std::atomic<bool>& cancelled_;
  const std::unique_ptr<v1::Node::Stub> stub_;
};

}  // namespace

std::unique_ptr<NodeClient> NodeClient::Open(
    const transport::Endpoint& node, const std::atomic<bool>& cancelled) {
  return std::make_unique<GrpcNodeClient>(node, cancelled);
}

absl::StatusOr<transport::LinkRounds> MeasureLinkTo(
    const LinkQuestion& question, const std::atomic<bool>& cancelled) {
  MILLRACE_RETURN_IF_ERROR(
      transport::RequireTrustedLink(question.peer, question.insecure));
  MILLRACE_ASSIGN_OR_RETURN(
      control::OpenedLink link,
      NodeClient::Open(question.peer, cancelled)->OpenLink(kLinkUpTimeout));
  if (link.address.host == "0.0.0.0" || link.address.host == "::") {
    link.address.host = question.peer.host;
  }
  MILLRACE_RETURN_IF_ERROR(
      transport::RequireTrustedLink(link.address, question.insecure));
  MILLRACE_ASSIGN_OR_RETURN(
      std::shared_ptr<transport::Channel> channel,
      transport::DialTcp(link.address, transport::MeteredLink(link.token),
                         kLinkUpTimeout, &cancelled));
  return transport::MeterLink(std::move(channel), question.rounds,
                              question.time, cancelled);
}

}  // namespace millrace::worker
