#include "coordinator/membership/control_server.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/mutex.h"
#include "coordinator/membership/control_session.h"
#include "millrace/control/v1/control.grpc.pb.h"

namespace millrace::coordinator {
namespace {

using Reactor = grpc::ServerBidiReactor<control::v1::WorkerMessage,
                                        control::v1::CoordinatorMessage>;

// Control messages are small; a large one is an attack or a mistake.
constexpr int kMessageBytesMax = 64 << 10;

// Frees the streams of peers that vanished without a word. Slow, as losing the
// worker behind one is the lease's business.
constexpr int kKeepaliveMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5000;
// The fastest pings that workers may send.
constexpr int kPingIntervalMinMs = 500;

// What sessions get to write their last words when the server stops.
constexpr auto kStopGrace = std::chrono::milliseconds(500);

// A stream that is refused before it is a session.
class Refusal final : public Reactor {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

class GrpcControlServer final : public ControlServer,
                                private control::v1::Control::CallbackService {
 public:
  explicit GrpcControlServer(Options options) : options_(std::move(options)) {}
  ~GrpcControlServer() override { Stop(); }
  GrpcControlServer(const GrpcControlServer&) = delete;
  GrpcControlServer& operator=(const GrpcControlServer&) = delete;

  absl::Status Listen();

  [[nodiscard]] const transport::Endpoint& endpoint() const override {
    return endpoint_;
  }
  void Send(SessionId session,
            const control::CoordinatorMessage& message) override {
    if (const std::shared_ptr<ControlSession> found = Find(session)) {
      found->Send(message);
    }
  }
  void End(SessionId session, const absl::Status& reason) override {
    if (const std::shared_ptr<ControlSession> found = Find(session)) {
      found->End(reason);
    }
  }
  void EndSilent(absl::Duration age) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Reactor* Session(grpc::CallbackServerContext* context) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<ControlSession> Find(SessionId session)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<ControlSession>> All()
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(SessionId session) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  transport::Endpoint endpoint_;
  std::unique_ptr<grpc::Server> server_;

  Mutex mutex_;
  CondVar removed_;
  std::map<SessionId, std::shared_ptr<ControlSession>> sessions_
      ABSL_GUARDED_BY(mutex_);
  SessionId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status GrpcControlServer::Listen() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(transport::FormatEndpoint(options_.listen),
                           grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      kPingIntervalMinMs);
  // Two coordinators on one port would share its workers at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return MakeError(absl::StatusCode::kUnavailable,
                     transport::FormatEndpoint(options_.listen),
                     "cannot listen for workers",
                     "another program may use the port; port 0 takes any "
                     "free one");
  }
  endpoint_ = {options_.listen.host, static_cast<uint16_t>(port)};
  return absl::OkStatus();
}

Reactor* GrpcControlServer::Session(grpc::CallbackServerContext* context) {
  std::shared_ptr<ControlSession> session;
  {
    MutexLock lock(mutex_);
    if (stopping_ ||
        static_cast<int>(sessions_.size()) >= options_.sessions_max) {
      return new Refusal(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "no more workers are let in"));
    }
    const SessionId id = next_id_++;
    session = std::make_shared<ControlSession>(
        id, context, options_, [this](SessionId ended) { Remove(ended); });
    sessions_.emplace(id, session);
  }
  session->Begin(session);
  return session.get();
}

std::shared_ptr<ControlSession> GrpcControlServer::Find(SessionId session) {
  MutexLock lock(mutex_);
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<ControlSession>> GrpcControlServer::All() {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<ControlSession>> all;
  for (const auto& [id, session] : sessions_) {
    all.push_back(session);
  }
  return all;
}

void GrpcControlServer::Remove(SessionId session) {
  MutexLock lock(mutex_);
  sessions_.erase(session);
  removed_.NotifyAll();
}

void GrpcControlServer::EndSilent(absl::Duration age) {
  for (const std::shared_ptr<ControlSession>& session : All()) {
    if (session->SilentFor(age)) {
      session->End(MakeError(absl::StatusCode::kDeadlineExceeded,
                             "control stream", "did not register in time"));
    }
  }
}

void GrpcControlServer::Stop() {
  {
    MutexLock lock(mutex_);
    if (stopping_ || server_ == nullptr) {
      return;
    }
    stopping_ = true;
  }
  for (const std::shared_ptr<ControlSession>& session : All()) {
    session->End(MakeError(absl::StatusCode::kUnavailable, "coordinator",
                           "is shutting down"));
  }
  server_->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  server_->Wait();
  MutexLock lock(mutex_);
  while (!sessions_.empty()) {
    removed_.Wait(mutex_);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Start(
    Options options) {
  auto server = std::make_unique<GrpcControlServer>(std::move(options));
  if (absl::Status status = server->Listen(); !status.ok()) {
    return status;
  }
  return std::unique_ptr<ControlServer>(std::move(server));
}

}  // namespace millrace::coordinator
