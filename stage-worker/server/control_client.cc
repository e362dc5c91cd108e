#include "stage-worker/server/control_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "base/error.h"
#include "millrace/control/v1/control.grpc.pb.h"
#include "proto/control_codec.h"

namespace millrace::worker {
namespace {

// A coordinator that hangs or is cut off is noticed within 2 + 2 s of silence.
// The server is told to tolerate these pings.
constexpr int kKeepaliveMs = 2000;
constexpr int kMessageBytesMax = 64 << 10;

std::shared_ptr<grpc::Channel> MakeChannel(
    const transport::Endpoint& coordinator) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Every session connects anew: retrying has its one place above.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  return grpc::CreateCustomChannel(transport::FormatEndpoint(coordinator),
                                   grpc::InsecureChannelCredentials(),
                                   arguments);
}

class GrpcControlClient final : public ControlClient {
 public:
  explicit GrpcControlClient(const transport::Endpoint& coordinator)
      : name_(transport::FormatEndpoint(coordinator)),
        stub_(control::v1::Control::NewStub(MakeChannel(coordinator))) {
    // Else opening the stream would wait for the connection, up to 20 s where
    // somebody takes it and says nothing, and nobody could cancel it.
    context_.set_initial_metadata_corked(true);
    stream_ = stub_->Session(&context_);
  }

  bool Write(const control::WorkerMessage& message) override {
    return stream_->Write(control::Encode(message));
  }

  absl::StatusOr<control::CoordinatorMessage> Read() override {
    control::v1::CoordinatorMessage message;
    if (!stream_->Read(&message)) {
      return absl::UnavailableError("the control stream has ended");
    }
    return control::Decode(message);
  }

  void Cancel() override { context_.TryCancel(); }

  absl::Status Finish() override {
    const grpc::Status status = stream_->Finish();
    if (status.ok()) {
      return MakeError(absl::StatusCode::kUnavailable, name_,
                       "the coordinator ended the session");
    }
    return MakeError(static_cast<absl::StatusCode>(status.error_code()), name_,
                     Printable(status.error_message(), 1000));
  }

 private:
  const std::string name_;
  grpc::ClientContext context_;
  const std::unique_ptr<control::v1::Control::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<control::v1::WorkerMessage,
                                           control::v1::CoordinatorMessage>>
      stream_;
};

}  // namespace

std::unique_ptr<ControlClient> ControlClient::Open(
    const transport::Endpoint& coordinator) {
  return std::make_unique<GrpcControlClient>(coordinator);
}

}  // namespace millrace::worker
