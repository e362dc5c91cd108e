#include "coordinator/http/request_parser.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "boost/asio/buffer.hpp"
#include "boost/beast/http/error.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/string_body.hpp"

namespace millrace::coordinator {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

absl::string_view View(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

struct RequestParser::Grammar {
  http::request_parser<http::string_body> parser;
};

RequestParser::RequestParser(const ParserLimits& limits)
    : limits_(limits), grammar_(std::make_unique<Grammar>()) {
  grammar_->parser.eager(false);
  grammar_->parser.header_limit(
      static_cast<std::uint32_t>(limits.header_bytes_max));
  grammar_->parser.body_limit(
      static_cast<std::uint64_t>(limits.body_bytes_max));
}

RequestParser::~RequestParser() = default;

size_t RequestParser::Feed(absl::string_view data) {
  size_t used = 0;
  // Empty lines in front of a request are skipped (RFC 9112, section 2.2).
  while (!started_ && absl::StartsWith(data.substr(used), "\r\n")) {
    used += 2;
  }
  if (!started_ && data.substr(used) == "\r") {
    return used;
  }
  while (used < data.size() &&
         (state_ == State::kHead || state_ == State::kBody)) {
    started_ = true;
    error_code error;
    const absl::string_view rest = data.substr(used);
    const size_t taken = grammar_->parser.put(
        boost::asio::const_buffer(rest.data(), rest.size()), error);
    used += taken;
    if (error == http::error::need_more) {
      // Only an endless line of chunk extensions or trailers gets here.
      if (static_cast<int64_t>(rest.size() - taken) >
          limits_.header_bytes_max) {
        Fail(431, "the head of a chunk or the trailer is too long");
      }
      return used;
    }
    if (error) {
      FailWith(&error);
      return used;
    }
    if (state_ == State::kHead && grammar_->parser.is_header_done()) {
      TakeHead();
      if (state_ == State::kBody && grammar_->parser.is_done()) {
        TakeBody();
        state_ = State::kDone;
      }
      return used;
    }
    TakeBody();
    if (state_ == State::kBody && grammar_->parser.is_done()) {
      state_ = State::kDone;
    } else if (taken == 0) {
      return used;
    }
  }
  return used;
}

int64_t RequestParser::kept_bytes() const {
  return static_cast<int64_t>(request_.body.size());
}

void RequestParser::DiscardBody() {
  discard_ = true;
  request_.body = std::string();
}

void RequestParser::Fail(int status, absl::string_view text) {
  state_ = State::kFailed;
  error_status_ = status;
  error_text_ = std::string(text);
}

void RequestParser::FailWith(const void* error_code_pointer) {
  const auto& error = *static_cast<const error_code*>(error_code_pointer);
  if (error == http::error::header_limit) {
    Fail(431, absl::StrCat("the request's head is longer than the ",
                           limits_.header_bytes_max, " bytes allowed"));
  } else if (error == http::error::body_limit) {
    Fail(413, absl::StrCat("the request's body is longer than the ",
                           limits_.body_bytes_max, " bytes allowed"));
  } else if (error == http::error::bad_version) {
    Fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  } else {
    Fail(400, absl::StrCat("this is no valid HTTP request: ", error.message()));
  }
}

void RequestParser::TakeHead() {
  auto& message = grammar_->parser.get();
  if (message.version() != 10 && message.version() != 11) {
    return Fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  }
  request_.method = std::string(View(message.method_string()));
  request_.minor_version = static_cast<int>(message.version() % 10);
  keep_alive_ = grammar_->parser.keep_alive() && request_.minor_version == 1;
  int hosts = 0;
  int lengths = 0;
  int codings = 0;
  for (const auto& field : message) {
    const absl::string_view name = View(field.name_string());
    const absl::string_view value = View(field.value());
    hosts += absl::EqualsIgnoreCase(name, "host") ? 1 : 0;
    lengths += absl::EqualsIgnoreCase(name, "content-length") ? 1 : 0;
    if (absl::EqualsIgnoreCase(name, "transfer-encoding")) {
      ++codings;
      if (!absl::EqualsIgnoreCase(value, "chunked")) {
        return Fail(501, "the only transfer coding understood is chunked");
      }
    }
    request_.headers.push_back({std::string(name), std::string(value)});
  }
  if (codings > 1 || (codings > 0 && lengths > 0)) {
    return Fail(400, "the length of the body is given in two ways");
  }
  if (codings > 0 && request_.minor_version == 0) {
    return Fail(400, "HTTP/1.0 knows no transfer codings");
  }
  if (hosts > 1 || (hosts == 0 && request_.minor_version == 1)) {
    return Fail(400, "exactly one Host field is needed");
  }
  if (!TakeTarget(View(message.target()))) {
    return Fail(400, "the request's target must be a path or an http URL");
  }
  const absl::string_view expectation = request_.Header("expect");
  expects_continue_ = absl::EqualsIgnoreCase(expectation, "100-continue");
  if (!expectation.empty() && !expects_continue_) {
    return Fail(417, "the only expectation understood is 100-continue");
  }
  state_ = State::kBody;
}

bool RequestParser::TakeTarget(absl::string_view target) {
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (absl::StartsWithIgnoreCase(target, scheme)) {
      target.remove_prefix(scheme.size());
      const size_t slash = target.find_first_of("/?");
      target = slash == absl::string_view::npos ? "/" : target.substr(slash);
    }
  }
  const size_t mark = target.find('?');
  absl::string_view path = target.substr(0, mark);
  if (mark != absl::string_view::npos) {
    request_.query = std::string(target.substr(mark + 1));
    path = path.empty() ? "/" : path;
  }
  request_.path = std::string(path);
  return absl::StartsWith(path, "/") || path == "*";
}

void RequestParser::TakeBody() {
  std::string& body = grammar_->parser.get().body();
  body_bytes_ += static_cast<int64_t>(body.size());
  if (!discard_) {
    request_.body.append(body);
  }
  body.clear();
}

}  // namespace millrace::coordinator
