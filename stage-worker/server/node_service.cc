#include "stage-worker/server/node_service.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "millrace/control/v1/node.grpc.pb.h"
#include "proto/error_codec.h"
#include "proto/node_codec.h"
#include "stage-worker/server/node_client.h"
#include "transport/link_meter.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::worker {
namespace {

namespace v1 = control::v1;

constexpr int kMessageBytesMax = 64 << 10;
// Calls at once, of which each takes a thread; further ones are refused.
constexpr int kThreadsMax = 16;
// For the meter before to be done with its link, whose end it has just closed.
constexpr absl::Duration kIdleTimeout = absl::Seconds(1);
// A node that asked for a link dials it at once.
constexpr absl::Duration kAcceptTimeout = absl::Seconds(3);
// Twice what a meter takes at most, since its clock began later.
constexpr absl::Duration kAnswerTimeout = absl::Seconds(20);
constexpr auto kStopGrace = std::chrono::milliseconds(100);

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      Printable(status.message(), 1000),
                      control::EncodeError(status).SerializeAsString());
}

// Encodes into `response`, or says why not.
template <typename Value, typename Response>
grpc::Status Answer(const absl::StatusOr<Value>& value, Response* response) {
  if (!value.ok()) {
    return ToGrpc(value.status());
  }
  *response = control::Encode(*value);
  return grpc::Status::OK;
}

absl::Status NotOffered(absl::string_view what) {
  return MakeError(absl::StatusCode::kUnimplemented, "node",
                   absl::StrCat("does not offer ", what));
}

// The other end of one measuring link at a time, on a thread of its own.
class LinkAnswerer {
 public:
  explicit LinkAnswerer(const transport::Endpoint& listen) : listen_(listen) {}
  ~LinkAnswerer();
  LinkAnswerer(const LinkAnswerer&) = delete;
  LinkAnswerer& operator=(const LinkAnswerer&) = delete;

  // kResourceExhausted while a link is open.
  absl::StatusOr<control::OpenedLink> Open() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Serve(transport::TcpListener& listener,
             const transport::LinkToken& token) const;

  const transport::Endpoint listen_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  CondVar idle_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

LinkAnswerer::~LinkAnswerer() {
  stopping_.store(true, std::memory_order_relaxed);
  std::thread thread;
  {
    MutexLock lock(mutex_);
    thread.swap(thread_);
  }
  if (thread.joinable()) {
    thread.join();
  }
}

absl::StatusOr<control::OpenedLink> LinkAnswerer::Open() {
  MutexLock lock(mutex_);
  const SystemClock clock;
  const absl::Duration end = clock.Monotonic() + kIdleTimeout;
  while (busy_ && clock.Monotonic() < end) {
    idle_.WaitFor(mutex_, end - clock.Monotonic());
  }
  if (busy_) {
    return MakeError(absl::StatusCode::kResourceExhausted, "node",
                     "another link to it is being measured",
                     "measure one after another");
  }
  if (thread_.joinable()) {
    thread_.join();  // it has left the lock for the last time
  }
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<transport::TcpListener> listener,
                            transport::TcpListener::Listen({listen_.host, 0}));
  control::OpenedLink link;
  link.address = listener->endpoint();
  link.token = transport::MakeLinkToken();
  busy_ = true;
  thread_ = std::thread([this, listener, token = link.token]() noexcept {
    Serve(*listener, token);
    MutexLock done(mutex_);
    busy_ = false;
    idle_.NotifyAll();
  });
  return link;
}

void LinkAnswerer::Serve(transport::TcpListener& listener,
                         const transport::LinkToken& token) const {
  absl::StatusOr<std::shared_ptr<transport::Channel>> channel = listener.Accept(
      transport::MeteredLink(token), kAcceptTimeout, &stopping_);
  if (!channel.ok()) {
    MILLRACE_LOG(Warning) << "no link to be measured: "
                          << channel.status().message();
    return;
  }
  const absl::Status end =
      transport::AnswerMeter(*std::move(channel), kAnswerTimeout, stopping_);
  if (absl::IsDataLoss(end)) {
    MILLRACE_LOG(Warning) << "measuring a link: " << end.message();
  }
}

class GrpcNodeService final : public NodeService, private v1::Node::Service {
 public:
  explicit GrpcNodeService(Options options)
      : options_(std::move(options)), links_(options_.listen) {}
  ~GrpcNodeService() override {
    stopping_.store(true, std::memory_order_relaxed);
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now() + kStopGrace);
      server_->Wait();
    }
  }
  GrpcNodeService(const GrpcNodeService&) = delete;
  GrpcNodeService& operator=(const GrpcNodeService&) = delete;

  absl::Status Listen();
  [[nodiscard]] const transport::Endpoint& endpoint() const override {
    return endpoint_;
  }

 private:
  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*,
                        v1::NodeDescription* response) override {
    *response = control::Encode(options_.describe());
    return grpc::Status::OK;
  }
  grpc::Status FindModel(grpc::ServerContext*,
                         const v1::FindModelRequest* request,
                         v1::ModelDescription* response) override {
    return Answer(Find(*request), response);
  }
  grpc::Status MeasureNode(grpc::ServerContext*, const v1::MeasureNodeRequest*,
                           v1::NodeRates* response) override {
    return Answer(options_.measure ? Measuring(options_.measure)
                                   : NotOffered("measuring itself"),
                  response);
  }
  grpc::Status MeasureLink(grpc::ServerContext*,
                           const v1::MeasureLinkRequest* request,
                           v1::LinkRates* response) override {
    return Answer(Meter(*request), response);
  }
  grpc::Status OpenLink(grpc::ServerContext*, const v1::OpenLinkRequest*,
                        v1::OpenedLink* response) override {
    return Answer(links_.Open(), response);
  }

  absl::StatusOr<control::ModelDescription> Find(
      const v1::FindModelRequest& request) const;
  absl::StatusOr<transport::LinkRounds> Meter(
      const v1::MeasureLinkRequest& request);
  // Runs `measure` unless another one does.
  template <typename Measure>
  auto Measuring(const Measure& measure) -> decltype(measure());

  const Options options_;
  transport::Endpoint endpoint_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> measuring_{false};
  LinkAnswerer links_;
  std::unique_ptr<grpc::Server> server_;  // last: calls the above
};

absl::Status GrpcNodeService::Listen() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(transport::FormatEndpoint(options_.listen),
                           grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(kThreadsMax);
  builder.SetResourceQuota(quota);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return MakeError(absl::StatusCode::kUnavailable,
                     transport::FormatEndpoint(options_.listen),
                     "cannot listen for probes and checks",
                     "another program may use the port; port 0 takes any "
                     "free one");
  }
  endpoint_ = {options_.listen.host, static_cast<uint16_t>(port)};
  return absl::OkStatus();
}

absl::StatusOr<control::ModelDescription> GrpcNodeService::Find(
    const v1::FindModelRequest& request) const {
  if (!options_.find_model) {
    return NotOffered("models: it is no worker");
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::string model, control::Decode(request));
  return options_.find_model(model);
}

absl::StatusOr<transport::LinkRounds> GrpcNodeService::Meter(
    const v1::MeasureLinkRequest& request) {
  LinkQuestion question;
  MILLRACE_ASSIGN_OR_RETURN(question.peer, control::Decode(request));
  question.insecure = options_.insecure;
  return Measuring([&] { return MeasureLinkTo(question, stopping_); });
}

template <typename Measure>
auto GrpcNodeService::Measuring(const Measure& measure) -> decltype(measure()) {
  if (measuring_.exchange(true, std::memory_order_acquire)) {
    return MakeError(absl::StatusCode::kResourceExhausted, "node",
                     "is measuring already", "measure one after another");
  }
  auto measured = measure();
  measuring_.store(false, std::memory_order_release);
  return measured;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeService>> NodeService::Start(
    Options options) {
  MILLRACE_RETURN_IF_ERROR(
      transport::RequireTrustedLink(options.listen, options.insecure));
  auto service = std::make_unique<GrpcNodeService>(std::move(options));
  MILLRACE_RETURN_IF_ERROR(service->Listen());
  return std::unique_ptr<NodeService>(std::move(service));
}

}  // namespace millrace::worker
