#include "coordinator/api/api_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"

namespace millrace::coordinator {

std::string FingerprintOf(absl::string_view version) {
  return absl::StrCat("millrace-", version, "-deterministic");
}

absl::Status CheckListenAddress(const std::string& host, bool has_keys,
                                bool insecure) {
  if (IsLoopback(host) || has_keys || insecure) {
    return absl::OkStatus();
  }
  return UsageError(
      "--host",
      absl::StrCat("'", Printable(host),
                   "' can be reached from other machines, and no API key is "
                   "asked for"),
      "give --api-key-file, or --insecure if everybody there may use the "
      "model");
}

ApiServer::ApiServer(Options options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? options_.clock : &system_clock_) {
  if (options_.model.created == absl::UnixEpoch()) {
    options_.model.created = clock_->Now();
  }
}

ApiServer::~ApiServer() { Stop(); }

absl::StatusOr<std::unique_ptr<ApiServer>> ApiServer::Start(Options options) {
  std::unique_ptr<ApiServer> server(new ApiServer(std::move(options)));
  MILLRACE_RETURN_IF_ERROR(server->Listen());
  return server;
}

absl::Status ApiServer::Listen() {
  MILLRACE_ASSIGN_OR_RETURN(
      http_,
      HttpServer::Create({.host = options_.host,
                          .port = options_.port,
                          .tls_certificate_file = options_.tls_certificate_file,
                          .tls_key_file = options_.tls_key_file,
                          .limits = options_.limits,
                          .clock = clock_}));
  auto services = std::make_shared<GenerationServices>();
  services->engine = options_.engine;
  services->metrics = &metrics_;
  services->clock = clock_;
  // Weak: the engine may still hold observers when this server is gone.
  const std::weak_ptr<HttpServer> weak = http_;
  services->post = [weak](std::function<void()> function) {
    if (const auto http = weak.lock()) {
      http->Post(std::move(function));
    }
  };
  services->post_after = [weak](absl::Duration delay,
                                std::function<void()> function) {
    if (const auto http = weak.lock()) {
      http->PostAfter(delay, std::move(function));
    }
  };
  handler_ = std::make_unique<ApiHandler>(ApiHandler::Options{
      .model = options_.model,
      .keys = options_.keys,
      .version = options_.version,
      .fingerprint = FingerprintOf(options_.version),
      .services = std::move(services),
      .num_connections = [http =
                              http_.get()] { return http->num_connections(); },
      .body_bytes_max = options_.limits.parser.body_bytes_max});
  http_->Serve(*handler_);
  return absl::OkStatus();
}

std::string ApiServer::url() const { return http_->url(); }

void ApiServer::Drain(absl::Duration deadline) {
  const absl::Duration end = clock_->Monotonic() + deadline;
  handler_->BeginDrain();
  options_.engine->Drain(deadline);
  // Answers that are ready still have to reach their clients.
  const absl::Duration flush =
      std::max<absl::Duration>(end - clock_->Monotonic(), absl::Seconds(1));
  http_->Drain(flush);
}

void ApiServer::CutRunning() { options_.engine->Drain(absl::ZeroDuration()); }

void ApiServer::Stop() {
  if (http_ != nullptr) {
    http_->Stop();
  }
}

}  // namespace millrace::coordinator
