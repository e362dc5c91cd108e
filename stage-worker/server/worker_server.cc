#include "stage-worker/server/worker_server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "stage-worker/server/backoff.h"
#include "stage-worker/server/control_client.h"
#include "stage-worker/server/resident_bytes.h"
#include "stage-worker/server/stage_host.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::worker {
namespace {

// A coordinator that comes back finds its workers within this time.
constexpr absl::Duration kBackoffFirst = absl::Milliseconds(100);
constexpr absl::Duration kBackoffMax = absl::Seconds(3);
// For the answer to Register; connecting included.
constexpr absl::Duration kWelcomeTimeout = absl::Seconds(5);
// Answers and progress on their way to the coordinator.
constexpr size_t kOutgoingMax = 256;

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= control::kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '.' || c == '_' || c == '-';
         });
}

class LiveWorkerServer final : public WorkerServer {
 public:
  LiveWorkerServer(Options options,
                   std::unique_ptr<transport::TcpListener> listener)
      : options_(std::move(options)),
        listener_(std::move(listener)),
        host_({.factory = options_.factory,
               .listener = listener_.get(),
               .insecure = options_.insecure,
               .coordinator_host = options_.coordinator.host,
               .emit = [this](control::WorkerMessage message) {
                 Emit(std::move(message));
               }}) {}
  LiveWorkerServer(const LiveWorkerServer&) = delete;
  LiveWorkerServer& operator=(const LiveWorkerServer&) = delete;

  [[nodiscard]] const transport::Endpoint& data_endpoint() const override {
    return listener_->endpoint();
  }
  [[nodiscard]] std::string load_key() const override {
    return host_.load_key();
  }
  void Run() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What a session's two threads share.
  struct Session {
    explicit Session(std::unique_ptr<ControlClient> opened)
        : client(std::move(opened)), outgoing(kOutgoingMax) {}
    const std::unique_ptr<ControlClient> client;
    BoundedQueue<control::WorkerMessage> outgoing;
    // Set by the reader before `welcomed`, read by the writer after it.
    absl::Duration heartbeat;
    std::atomic<bool> welcomed{false};
  };

  // From dialing to the end; why it ended.
  absl::Status RunSession(Backoff& backoff) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReadAll(Session& session, Backoff& backoff);
  // True to go on.
  bool Handle(const control::CoordinatorMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteAll(Session& session);
  [[nodiscard]] control::Register MakeRegister() const;
  // From the host: to the coordinator, if there is one, and to on_event.
  void Emit(control::WorkerMessage message) ABSL_LOCKS_EXCLUDED(mutex_);
  void Report(const control::WorkerMessage& message);
  void Report(const WorkerEvent& event) {
    if (options_.on_event) {
      options_.on_event(event);
    }
  }
  bool stopping() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return stopping_;
  }
  // False when stopping.
  bool Sleep(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const SystemClock clock_;
  const std::unique_ptr<transport::TcpListener> listener_;
  // Run's thread: the coordinator has said that it ends, and is not missed.
  bool coordinator_drained_ = false;

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mutex_);

  StageHost host_;  // last: emits into what is above
};

void LiveWorkerServer::Run() {
  Backoff backoff(kBackoffFirst, kBackoffMax, std::random_device()());
  absl::Status last;
  do {
    const absl::Status status = RunSession(backoff);
    host_.Deactivate(0);
    if (stopping()) {
      break;
    }
    if (status != last) {  // an absent coordinator is told of once
      Report({.kind = WorkerEvent::Kind::kDisconnected,
              .epoch = 0,
              .memory = {},
              .reason = status});
      LogLine(
          coordinator_drained_ ? LogLevel::kInfo : LogLevel::kWarning, __FILE__,
          absl::StrCat("no session with the coordinator: ", status.message()));
      last = status;
    }
  } while (Sleep(backoff.Next()));
  listener_->Close();
}

void LiveWorkerServer::Stop() {
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    session = session_;
    stop_.NotifyAll();
  }
  if (session != nullptr) {
    session->client->Cancel();
  }
}

bool LiveWorkerServer::Sleep(absl::Duration duration) {
  const absl::Duration until = clock_.Monotonic() + duration;
  MutexLock lock(mutex_);
  while (!stopping_ && clock_.Monotonic() < until) {
    stop_.WaitFor(mutex_, until - clock_.Monotonic());
  }
  return !stopping_;
}

control::Register LiveWorkerServer::MakeRegister() const {
  control::Register message;
  message.name = options_.name;
  message.version = options_.version;
  message.memory_bytes = options_.memory_bytes;
  message.data_address = listener_->endpoint();
  message.isa = options_.isa;
  message.kernels = options_.kernels;
  message.pid = getpid();
  message.resident_bytes = ResidentBytes();
  message.load_key = host_.load_key();
  return message;
}

absl::Status LiveWorkerServer::RunSession(Backoff& backoff) {
  auto session =
      std::make_shared<Session>(ControlClient::Open(options_.coordinator));
  {
    MutexLock lock(mutex_);
    if (stopping_) {
      return absl::CancelledError("stopping");
    }
    session_ = session;
  }
  std::thread writer([this, &session]() noexcept { WriteAll(*session); });
  const absl::Status read = ReadAll(*session, backoff);
  {
    MutexLock lock(mutex_);
    session_ = nullptr;
  }
  session->outgoing.Close();
  if (!absl::IsUnavailable(read)) {
    session->client->Cancel();  // the stream itself still stands
  }
  writer.join();
  const absl::Status finish = session->client->Finish();
  return absl::IsUnavailable(read) ? finish : read;
}

absl::Status LiveWorkerServer::ReadAll(Session& session, Backoff& backoff) {
  for (;;) {
    absl::StatusOr<control::CoordinatorMessage> message =
        session.client->Read();
    MILLRACE_RETURN_IF_ERROR(message.status());
    const bool first = !session.welcomed;
    const auto* welcome = std::get_if<control::Welcome>(&*message);
    if (first != (welcome != nullptr)) {
      return MakeError(absl::StatusCode::kInternal, "coordinator",
                       "sent its messages out of order");
    }
    if (welcome != nullptr) {
      session.heartbeat = welcome->heartbeat;
      session.welcomed = true;
      coordinator_drained_ = false;
      // Wakes the writer: heartbeats begin now.
      (void)session.outgoing.TryPush(
          control::Heartbeat{host_.Counters(), ResidentBytes()});
      backoff.Reset();
      MILLRACE_LOG(Info) << "registered as " << options_.name;
      Report({.kind = WorkerEvent::Kind::kRegistered,
              .epoch = 0,
              .memory = {},
              .reason = absl::OkStatus()});
    } else if (!Handle(*message)) {
      return absl::CancelledError("shut down by the coordinator");
    }
  }
}

bool LiveWorkerServer::Handle(const control::CoordinatorMessage& message) {
  if (const auto* load = std::get_if<control::Load>(&message)) {
    host_.Load(*load);
  } else if (const auto* activate = std::get_if<control::Activate>(&message)) {
    host_.Activate(*activate);
  } else if (const auto* end = std::get_if<control::Deactivate>(&message)) {
    host_.Deactivate(end->epoch);
  } else if (std::holds_alternative<control::Drain>(message)) {
    MILLRACE_LOG(Info) << "the coordinator drains";
    coordinator_drained_ = true;
  } else if (std::holds_alternative<control::Shutdown>(message)) {
    MutexLock lock(mutex_);
    stopping_ = true;
    return false;
  }
  return true;
}

void LiveWorkerServer::WriteAll(Session& session) {
  if (!session.client->Write(MakeRegister())) {
    return;
  }
  absl::Duration due = clock_.Monotonic() + kWelcomeTimeout;
  bool welcomed = false;
  for (;;) {
    std::optional<control::WorkerMessage> message = session.outgoing.PopFor(
        std::max(due - clock_.Monotonic(), absl::ZeroDuration()));
    if (!message.has_value() && session.outgoing.closed()) {
      return;
    }
    if (!welcomed && session.welcomed) {
      welcomed = true;
      due = clock_.Monotonic();
    }
    if (message.has_value() && !session.client->Write(*message)) {
      return;
    }
    if (clock_.Monotonic() < due) {
      continue;
    }
    if (!welcomed) {
      session.client->Cancel();  // no answer; ends the read as well
      return;
    }
    due = clock_.Monotonic() + session.heartbeat;
    if (!session.client->Write(
            control::Heartbeat{host_.Counters(), ResidentBytes()})) {
      return;
    }
  }
}

void LiveWorkerServer::Emit(control::WorkerMessage message) {
  Report(message);
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    session = session_;
  }
  if (session == nullptr || !session->welcomed) {
    return;  // the next Register says what is loaded
  }
  const bool dispensable =
      std::holds_alternative<control::LoadProgress>(message);
  if (!session->outgoing.TryPush(std::move(message)) && !dispensable) {
    session->client->Cancel();  // a new session begins from what is
  }
}

void LiveWorkerServer::Report(const control::WorkerMessage& message) {
  WorkerEvent event;
  if (const auto* loaded = std::get_if<control::Loaded>(&message)) {
    event.kind = WorkerEvent::Kind::kLoaded;
    event.memory = {loaded->weights_bytes, loaded->kv_bytes,
                    loaded->scratch_bytes};
  } else if (const auto* active = std::get_if<control::Active>(&message)) {
    event.kind = WorkerEvent::Kind::kActive;
    event.epoch = active->epoch;
  } else if (const auto* ended = std::get_if<control::StageEnded>(&message)) {
    event.kind = WorkerEvent::Kind::kInactive;
    event.epoch = ended->epoch;
    event.reason = ended->error;
  } else if (const auto* failed = std::get_if<control::Failed>(&message)) {
    event.kind = WorkerEvent::Kind::kFailed;
    event.epoch = failed->epoch;
    event.reason = failed->error;
  } else {
    return;
  }
  Report(event);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Create(
    Options options) {
  if (!IsName(options.name)) {
    return UsageError("--name",
                      "takes 1 to 64 of letters, digits, '.', '_' and '-'");
  }
  MILLRACE_RETURN_IF_ERROR(
      transport::RequireTrustedLink(options.coordinator, options.insecure));
  MILLRACE_RETURN_IF_ERROR(
      transport::RequireTrustedLink(options.listen, options.insecure));
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<transport::TcpListener> listener,
                            transport::TcpListener::Listen(options.listen));
  return std::unique_ptr<WorkerServer>(
      new LiveWorkerServer(std::move(options), std::move(listener)));
}

}  // namespace millrace::worker
