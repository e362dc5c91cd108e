#include "coordinator/membership/control_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/error.h"
#include "proto/control_codec.h"

namespace millrace::coordinator {
namespace {

// gRPC writes "ipv4:10.0.0.7:41234" and "ipv6:%5B::1%5D:41234".
std::string PeerHost(const std::string& peer) {
  std::string text = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "ipv4:")) {
    absl::ConsumePrefix(&rest, "ipv6:");
  }
  const absl::StatusOr<transport::Endpoint> endpoint =
      transport::ParseEndpoint(rest);
  return endpoint.ok() ? endpoint->host : "";
}

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      Printable(status.message(), 1000));
}

}  // namespace

ControlSession::ControlSession(SessionId id,
                               grpc::CallbackServerContext* context,
                               const ControlServer::Options& options,
                               std::function<void(SessionId)> on_done)
    : id_(id),
      peer_host_(PeerHost(context->peer())),
      options_(options),
      on_done_(std::move(on_done)),
      begun_at_(SystemClock().Monotonic()) {}

void ControlSession::Begin(std::shared_ptr<ControlSession> self) {
  {
    MutexLock lock(mutex_);
    self_ = std::move(self);
  }
  StartRead(&incoming_);
}

void ControlSession::Send(const control::CoordinatorMessage& message) {
  MutexLock lock(mutex_);
  if (end_.has_value()) {
    return;
  }
  if (outgoing_.size() >= options_.queue_max) {
    EndLocked(MakeError(absl::StatusCode::kResourceExhausted, "control stream",
                        "the worker does not read its messages"));
    return;
  }
  outgoing_.push_back(control::Encode(message));
  StepLocked();
}

void ControlSession::End(const absl::Status& reason) {
  MutexLock lock(mutex_);
  EndLocked(reason);
}

bool ControlSession::SilentFor(absl::Duration age) {
  MutexLock lock(mutex_);
  return !heard_ && SystemClock().Monotonic() >= begun_at_ + age;
}

void ControlSession::EndLocked(const absl::Status& reason) {
  if (!end_.has_value()) {
    end_ = reason;
    StepLocked();
  }
}

void ControlSession::StepLocked() {
  if (writing_ || finished_) {
    return;
  }
  if (!outgoing_.empty()) {
    in_flight_ = std::move(outgoing_.front());
    outgoing_.pop_front();
    writing_ = true;
    StartWrite(&in_flight_);
  } else if (end_.has_value()) {
    finished_ = true;
    Finish(ToGrpc(*end_));
  }
}

void ControlSession::OnReadDone(bool ok) {
  absl::StatusOr<control::WorkerMessage> message = absl::UnavailableError("");
  if (ok) {
    message = control::Decode(incoming_);
  } else {
    message = MakeError(absl::StatusCode::kUnavailable, "control stream",
                        "the worker ended it");
  }
  {
    MutexLock lock(mutex_);
    heard_ = true;
    if (!message.ok()) {
      EndLocked(message.status());
      return;
    }
    if (end_.has_value()) {
      return;
    }
  }
  options_.on_message(id_, *std::move(message), peer_host_);
  MutexLock lock(mutex_);
  if (!finished_) {
    StartRead(&incoming_);
  }
}

void ControlSession::OnWriteDone(bool ok) {
  MutexLock lock(mutex_);
  writing_ = false;
  if (!ok) {
    outgoing_.clear();
    EndLocked(MakeError(absl::StatusCode::kUnavailable, "control stream",
                        "it broke"));
  }
  StepLocked();
}

void ControlSession::OnCancel() {
  MutexLock lock(mutex_);
  outgoing_.clear();
  EndLocked(
      MakeError(absl::StatusCode::kUnavailable, "control stream", "it broke"));
}

void ControlSession::OnDone() {
  std::shared_ptr<ControlSession> self;
  absl::Status reason;
  {
    MutexLock lock(mutex_);
    self = std::move(self_);
    reason = end_.value_or(absl::UnavailableError("it ended"));
  }
  if (reason.ok()) {
    reason = MakeError(absl::StatusCode::kCancelled, "control stream",
                       "the coordinator ended it");
  }
  options_.on_end(id_, reason);
  on_done_(id_);
}

}  // namespace millrace::coordinator
