#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "boost/asio/io_context.hpp"
#include "coordinator/http/byte_stream.h"
#include "coordinator/http/exchange.h"
#include "coordinator/http/http_limits.h"
#include "coordinator/http/request_parser.h"

namespace millrace::coordinator {

class Connection;

// What a connection needs of its server. Loop thread.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  [[nodiscard]] virtual const HttpLimits& limits() const = 0;
  [[nodiscard]] virtual const Clock& clock() const = 0;
  virtual boost::asio::io_context& loop() = 0;
  virtual HttpHandler& handler() = 0;
  // While draining every answer closes its connection.
  [[nodiscard]] virtual bool draining() const = 0;
  // Accounts for `bytes` more (or fewer) of bodies; false: over the limit.
  virtual bool HoldBody(int64_t bytes) = 0;
  virtual std::string NewRequestId() = 0;
  virtual void Forget(const Connection& connection) = 0;
};

// One client connection: reads a request, hands it over, writes its answer,
// then takes the next one, so that pipelined requests are answered in order.
// Loop thread only; Exchange is the face for other threads. Owned by callbacks
// in flight and by the server's table until Forget.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionHost& host, std::unique_ptr<ByteStream> stream);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start();
  // Enforces deadlines and keeps quiet streams alive.
  void Sweep(absl::Duration now);
  // Closes at once; an answer in progress is broken off.
  void Close();
  // Waits for the rest of a request that has begun, or closes.
  void CloseIfIdle();
  // Answers `status` and ends; for a connection beyond the limit.
  void Refuse(int status, absl::string_view why);

  // Between requests, with nothing of the next one read.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] bool busy() const { return state_ == State::kAnswering; }
  // Has had an answer: more than an open socket is behind it.
  [[nodiscard]] bool proven() const { return reused_; }
  [[nodiscard]] absl::Duration since() const { return since_; }

 private:
  friend class ConnectionExchange;
  enum class State { kHandshake, kHead, kBody, kAnswering, kLinger, kClosed };

  void Enter(State state);
  void Read();
  void OnRead(const boost::system::error_code& error, size_t bytes);
  void OnEndOfInput(bool orderly);
  void Process();
  void OnHead();
  void OnRequest();
  bool AccountBody();

  // From the exchange `serial`; others are dropped.
  void Send(uint64_t serial, HttpResponse response);
  void StartStream(uint64_t serial, HttpResponse head, std::string filler);
  void WriteStream(uint64_t serial, absl::string_view data);
  void EndStream(uint64_t serial);
  void AbortStream(uint64_t serial);
  void SetGone(uint64_t serial, std::function<void()> gone);
  [[nodiscard]] bool Current(uint64_t serial) const;

  void Queue(absl::string_view bytes);
  void Flush();
  void OnWritten(const boost::system::error_code& error, size_t bytes);
  void FinishAnswer();
  void NotifyGone();

  ConnectionHost& host_;
  std::unique_ptr<ByteStream> stream_;
  State state_ = State::kHandshake;
  absl::Duration since_;  // when state_ was entered
  bool reused_ = false;   // has answered a request

  std::unique_ptr<RequestParser> parser_;
  std::string input_;  // received, not parsed; at most kInputBytesMax
  std::vector<char> read_buffer_;
  bool reading_ = false;
  bool input_ended_ = false;
  absl::Duration head_since_;  // first byte of the current request
  int64_t held_bytes_ = 0;     // accounted with the host

  uint64_t serial_ = 0;  // of the current exchange
  HttpRequest head_;     // of the current request, without body
  bool refused_ = false;
  HttpResponse refusal_;
  bool keep_alive_ = false;
  enum class Answer { kNone, kStreaming, kComplete };
  Answer answer_ = Answer::kNone;
  bool chunked_ = false;
  std::string filler_;
  std::function<void()> gone_;

  std::string output_;   // waits to be written; at most output_bytes_max
  std::string writing_;  // in flight
  size_t written_ = 0;   // of writing_
  bool write_pending_ = false;
  absl::Duration write_progress_;
};

}  // namespace millrace::coordinator
