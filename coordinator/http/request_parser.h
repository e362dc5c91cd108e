#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "coordinator/http/http_message.h"

namespace millrace::coordinator {

struct ParserLimits {
  int64_t header_bytes_max = int64_t{64} << 10;
  int64_t body_bytes_max = int64_t{8} << 20;
};

// Reads one HTTP/1 request from bytes as they come. Boost.Beast does the
// grammar; what it lets pass and a proxy may read otherwise (two framings,
// codings other than chunked, a missing Host) is refused here.
// One thread; no I/O. After kFailed the position in the input is lost and the
// connection must end.
class RequestParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  explicit RequestParser(const ParserLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Takes bytes from the front of `data` and returns how many; stops at the end
  // of the head and at the end of the message. What is left must be given
  // again, with more behind it, unless the state changed.
  size_t Feed(absl::string_view data);

  [[nodiscard]] State state() const { return state_; }
  // Any byte of the request was taken or refused.
  [[nodiscard]] bool started() const { return started_; }

  // Valid in kFailed.
  [[nodiscard]] int error_status() const { return error_status_; }
  [[nodiscard]] const std::string& error_text() const { return error_text_; }

  // The head from kBody on, with the body in kDone.
  [[nodiscard]] const HttpRequest& request() const { return request_; }
  HttpRequest TakeRequest() { return std::move(request_); }

  // Valid from kBody on.
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }
  // Bytes of body taken so far, and those of them that are kept.
  [[nodiscard]] int64_t body_bytes() const { return body_bytes_; }
  [[nodiscard]] int64_t kept_bytes() const;
  // Reads the rest of the body to its end but keeps nothing of it.
  void DiscardBody();

 private:
  struct Grammar;

  void Fail(int status, absl::string_view text);
  void FailWith(const void* error_code);
  void TakeHead();
  bool TakeTarget(absl::string_view target);
  void TakeBody();

  const ParserLimits limits_;
  std::unique_ptr<Grammar> grammar_;
  State state_ = State::kHead;
  bool started_ = false;
  HttpRequest request_;
  bool keep_alive_ = false;
  bool expects_continue_ = false;
  bool discard_ = false;
  int64_t body_bytes_ = 0;
  int error_status_ = 0;
  std::string error_text_;
};

}  // namespace millrace::coordinator
