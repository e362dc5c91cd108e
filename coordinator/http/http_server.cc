#include "coordinator/http/http_server.h"

#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "boost/asio/executor_work_guard.hpp"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/steady_timer.hpp"
#include "coordinator/http/byte_stream.h"
#include "coordinator/http/connection.h"

namespace millrace::coordinator {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Connections that wait to be accepted; a burst of clients must not be refused
// by the kernel. Capped by net.core.somaxconn.
constexpr int kBacklog = 4096;
// Pause after a failed accept (no descriptors left).
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

class AsioServer final : public HttpServer, public ConnectionHost {
 public:
  AsioServer(Options options, std::unique_ptr<asio::ssl::context> tls_context)
      : options_(std::move(options)),
        tls_context_(std::move(tls_context)),
        acceptor_(loop_),
        sweep_timer_(loop_),
        accept_timer_(loop_),
        id_generator_(std::random_device()()) {}

  ~AsioServer() override { Stop(); }

  absl::Status Listen() {
    tcp::resolver resolver(loop_);
    error_code error;
    const auto found =
        resolver.resolve(options_.host, absl::StrCat(options_.port),
                         tcp::resolver::passive, error);
    if (error || found.empty()) {
      return UsageError("--host", absl::StrCat("'", Printable(options_.host),
                                               "' is no address of this host: ",
                                               error.message()));
    }
    const tcp::endpoint endpoint = *found.begin();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    }
    if (!error) {
      acceptor_.bind(endpoint, error);
    }
    if (!error) {
      acceptor_.listen(kBacklog, error);
    }
    if (error) {
      return UsageError(
          "--port", absl::StrCat("cannot listen on ", options_.host, " port ",
                                 options_.port, ": ", error.message()));
    }
    const tcp::endpoint local = acceptor_.local_endpoint(error);
    const bool v6 = options_.host.find(':') != std::string::npos;
    url_ = absl::StrCat(tls_context_ == nullptr ? "http://" : "https://",
                        v6 ? "[" : "", options_.host, v6 ? "]" : "", ":",
                        local.port());
    return absl::OkStatus();
  }

  std::string url() const override { return url_; }

  void Serve(HttpHandler& handler) override {
    handler_ = &handler;
    work_.emplace(loop_.get_executor());
    asio::post(loop_, [this] { AcceptOnLoop(); });
    thread_ = std::thread([this]() noexcept { loop_.run(); });
  }

  void Post(std::function<void()> function) override {
    asio::post(loop_, std::move(function));
  }

  void PostAfter(absl::Duration delay,
                 std::function<void()> function) override {
    auto timer = std::make_shared<asio::steady_timer>(loop_);
    asio::post(loop_, [timer, delay, function = std::move(function)] {
      timer->expires_after(absl::ToChronoNanoseconds(delay));
      timer->async_wait([timer, function](const error_code& error) {
        if (!error) {
          function();
        }
      });
    });
  }

  void Drain(absl::Duration deadline) override {
    if (!thread_.joinable()) {
      return;
    }
    const absl::Duration end = options_.clock->Monotonic() + deadline;
    asio::post(loop_, [this] {
      draining_ = true;
      for (const auto& connection : Connections()) {
        connection->CloseIfIdle();
      }
    });
    // Waits for the posted step first: the loop runs in order.
    MutexLock lock(mutex_);
    bool stepped = false;
    asio::post(loop_, [this, &stepped] {
      MutexLock inner(mutex_);
      stepped = true;
      changed_.NotifyAll();
    });
    while (!stepped) {
      changed_.Wait(mutex_);
    }
    while (num_connections_ > 0) {
      const absl::Duration left = end - options_.clock->Monotonic();
      if (left <= absl::ZeroDuration()) {
        return;
      }
      changed_.WaitFor(mutex_, left);
    }
  }

  void Stop() override {
    if (!thread_.joinable()) {
      return;
    }
    asio::post(loop_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
      sweep_timer_.cancel();
      accept_timer_.cancel();
      for (const auto& connection : Connections()) {
        connection->Close();
      }
      work_.reset();
      // Timers of PostAfter may still wait; nothing may run after this.
      asio::post(loop_, [this] { loop_.stop(); });
    });
    thread_.join();
  }

  int64_t num_connections() const override {
    MutexLock lock(mutex_);
    return num_connections_;
  }

 private:
  const HttpLimits& limits() const override { return options_.limits; }
  const Clock& clock() const override { return *options_.clock; }
  asio::io_context& loop() override { return loop_; }
  HttpHandler& handler() override { return *handler_; }
  bool draining() const override { return draining_; }

  bool HoldBody(int64_t bytes) override {
    held_bytes_ += bytes;
    return bytes <= 0 || held_bytes_ <= options_.limits.bodies_bytes_max;
  }

  std::string NewRequestId() override {
    return absl::StrFormat("req-%016x", id_generator_());
  }

  void Forget(const Connection& connection) override {
    connections_.erase(&connection);
    Publish();
  }

  void Publish() {
    MutexLock lock(mutex_);
    num_connections_ = static_cast<int64_t>(connections_.size());
    changed_.NotifyAll();
  }

  // A copy: what is done to a connection may remove it from the table.
  std::vector<std::shared_ptr<Connection>> Connections() const {
    std::vector<std::shared_ptr<Connection>> out;
    out.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) {
      out.push_back(connection);
    }
    return out;
  }

  void AcceptOnLoop() {
    acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
      if (!acceptor_.is_open()) {
        return;
      }
      if (error) {
        MILLRACE_LOG(Warning)
            << "cannot accept a connection: " << error.message();
        MakeRoom();
        accept_timer_.expires_after(kAcceptPause);
        accept_timer_.async_wait([this](const error_code& cancelled) {
          if (!cancelled) {
            AcceptOnLoop();
          }
        });
        return;
      }
      Adopt(std::move(socket));
      AcceptOnLoop();
    });
  }

  void Adopt(tcp::socket socket) {
    if (static_cast<int64_t>(connections_.size()) >=
        options_.limits.connections_max) {
      MakeRoom();
    }
    error_code ignored;  // only costs time when it fails
    socket.set_option(tcp::no_delay(true), ignored);
    auto stream = tls_context_ == nullptr
                      ? MakePlainStream(std::move(socket))
                      : MakeTlsStream(std::move(socket), *tls_context_);
    if (static_cast<int64_t>(connections_.size()) >=
        options_.limits.connections_max) {
      stream->Close();
      return;
    }
    auto connection = std::make_shared<Connection>(*this, std::move(stream));
    connections_[connection.get()] = connection;
    Publish();
    connection->Start();
    if (connections_.size() == 1) {
      Sweep();
    }
  }

  // Closes the connection that has waited for longest for a client that says
  // nothing, first among those that never said anything, so that silent clients
  // keep nobody out.
  void MakeRoom() {
    std::shared_ptr<Connection> victim;
    const auto before = [](const Connection& a, const Connection& b) {
      return std::pair(a.proven(), a.since()) <
             std::pair(b.proven(), b.since());
    };
    for (const auto& [key, connection] : connections_) {
      if (!connection->busy() &&
          (victim == nullptr || before(*connection, *victim))) {
        victim = connection;
      }
    }
    if (victim != nullptr) {
      victim->Close();
    }
  }

  // Runs while there are connections: an idle server wakes for nothing.
  void Sweep() {
    sweep_timer_.expires_after(
        absl::ToChronoNanoseconds(options_.limits.sweep_every));
    sweep_timer_.async_wait([this](const error_code& error) {
      if (error) {
        return;
      }
      const absl::Duration now = options_.clock->Monotonic();
      for (const auto& connection : Connections()) {
        connection->Sweep(now);
        if (draining_) {
          connection->CloseIfIdle();
        }
      }
      if (!connections_.empty()) {
        Sweep();
      }
    });
  }

  const Options options_;
  const std::unique_ptr<asio::ssl::context> tls_context_;
  asio::io_context loop_{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>>
      work_;
  tcp::acceptor acceptor_;
  asio::steady_timer sweep_timer_;
  asio::steady_timer accept_timer_;
  std::string url_;
  HttpHandler* handler_ = nullptr;
  std::thread thread_;

  // Loop thread only.
  absl::flat_hash_map<const Connection*, std::shared_ptr<Connection>>
      connections_;
  bool draining_ = false;
  int64_t held_bytes_ = 0;
  std::mt19937_64 id_generator_;

  mutable Mutex mutex_;
  CondVar changed_;
  int64_t num_connections_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(
    Options options) {
  if (options.tls_certificate_file.empty() != options.tls_key_file.empty()) {
    return UsageError("--tls-cert", "needs --tls-key, and the other way round");
  }
  std::unique_ptr<asio::ssl::context> tls_context;
  if (!options.tls_certificate_file.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(
        tls_context,
        LoadTlsContext(options.tls_certificate_file, options.tls_key_file));
  }
  auto server =
      std::make_unique<AsioServer>(std::move(options), std::move(tls_context));
  MILLRACE_RETURN_IF_ERROR(server->Listen());
  return server;
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") {
    return true;
  }
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

}  // namespace millrace::coordinator
