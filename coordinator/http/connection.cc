#include "coordinator/http/connection.h"

#include <algorithm>
#include <utility>

#include "boost/asio/error.hpp"
#include "boost/asio/post.hpp"
#include "coordinator/http/connection_exchange.h"

namespace millrace::coordinator {
namespace {

using boost::system::error_code;

constexpr size_t kReadBytes = size_t{16} << 10;
// Pipelined requests that wait behind the one being answered. More stay in the
// kernel's buffer.
constexpr size_t kInputBytesMax = size_t{128} << 10;
// Of one write call, so that progress of a slow reader can be seen.
constexpr size_t kWriteBytesMax = size_t{64} << 10;
constexpr int64_t kBodyBytesPerSecond = int64_t{64} << 10;

}  // namespace

Connection::Connection(ConnectionHost& host, std::unique_ptr<ByteStream> stream)
    : host_(host),
      stream_(std::move(stream)),
      since_(host.clock().Monotonic()),
      parser_(std::make_unique<RequestParser>(host.limits().parser)),
      read_buffer_(kReadBytes) {}

Connection::~Connection() = default;

void Connection::Enter(State state) {
  state_ = state;
  since_ = host_.clock().Monotonic();
}

bool Connection::idle() const {
  return state_ == State::kHead && !parser_->started() && input_.empty();
}

void Connection::Start() {
  stream_->Handshake(
      [self = shared_from_this()](const error_code& error, size_t) {
        if (self->state_ != State::kHandshake) {
          return;
        }
        if (error) {
          self->Close();
          return;
        }
        self->Enter(State::kHead);
        self->Read();
      });
}

void Connection::Read() {
  if (reading_ || input_ended_ || state_ == State::kClosed ||
      input_.size() >= kInputBytesMax) {
    return;
  }
  reading_ = true;
  stream_->Read(
      boost::asio::buffer(read_buffer_),
      [self = shared_from_this()](const error_code& error, size_t bytes) {
        self->OnRead(error, bytes);
      });
}

void Connection::OnRead(const error_code& error, size_t bytes) {
  reading_ = false;
  if (state_ == State::kClosed) {
    return;
  }
  if (error) {
    input_ended_ = true;
    OnEndOfInput(error == boost::asio::error::eof);
    return;
  }
  if (state_ == State::kLinger) {
    Read();
    return;
  }
  input_.append(read_buffer_.data(), bytes);
  Process();
}

// `orderly`: the client may only have closed its sending side.
void Connection::OnEndOfInput(bool orderly) {
  if (orderly && state_ == State::kAnswering && !gone_) {
    return;  // the answer is on its way
  }
  Close();
}

// Parses what has come, as far as the state allows, and reads on.
void Connection::Process() {
  while ((state_ == State::kHead || state_ == State::kBody) &&
         !input_.empty()) {
    if (!parser_->started()) {
      head_since_ = host_.clock().Monotonic();
    }
    const RequestParser::State before = parser_->state();
    const size_t used = parser_->Feed(input_);
    input_.erase(0, used);
    if (parser_->state() == RequestParser::State::kFailed) {
      Refuse(parser_->error_status(), parser_->error_text());
      return;
    }
    if (before == RequestParser::State::kHead &&
        parser_->state() != RequestParser::State::kHead) {
      OnHead();
    }
    if (state_ == State::kBody && !AccountBody()) {
      Refuse(503, "too much is being uploaded at this moment");
      return;
    }
    if (state_ == State::kBody &&
        parser_->state() == RequestParser::State::kDone) {
      OnRequest();
    } else if (used == 0) {
      break;
    }
  }
  if (input_ended_ && (state_ == State::kHead || state_ == State::kBody)) {
    Close();
    return;
  }
  Read();
}

void Connection::OnHead() {
  Enter(State::kBody);
  refused_ = !host_.handler().AcceptHead(parser_->request(), refusal_);
  const bool waiting = parser_->expects_continue() &&
                       parser_->state() == RequestParser::State::kBody;
  if (refused_) {
    parser_->DiscardBody();
    if (waiting) {  // whether the body will come is up to the client
      refusal_.close = true;
      OnRequest();
    }
  } else if (waiting && input_.empty()) {
    Queue("HTTP/1.1 100 Continue\r\n\r\n");
    Flush();
  }
}

bool Connection::AccountBody() {
  const int64_t more = parser_->kept_bytes() - held_bytes_;
  held_bytes_ += more;
  return host_.HoldBody(more);
}

void Connection::OnRequest() {
  keep_alive_ = parser_->keep_alive();
  HttpRequest request = parser_->TakeRequest();
  const std::string asked = CleanRequestId(request.Header("x-request-id"));
  request.request_id = asked.empty() ? host_.NewRequestId() : asked;
  head_.method = request.method;
  head_.minor_version = request.minor_version;
  head_.request_id = request.request_id;
  parser_ = std::make_unique<RequestParser>(host_.limits().parser);
  answer_ = Answer::kNone;
  ++serial_;
  Enter(State::kAnswering);
  if (refused_) {
    refused_ = false;
    Send(serial_, std::exchange(refusal_, HttpResponse()));
    return;
  }
  host_.handler().Handle(std::move(request),
                         std::make_shared<ConnectionExchange>(
                             shared_from_this(), host_.loop(), serial_));
}

bool Connection::Current(uint64_t serial) const {
  return serial == serial_ && state_ == State::kAnswering &&
         answer_ != Answer::kComplete;
}

void Connection::Send(uint64_t serial, HttpResponse response) {
  if (!Current(serial) || answer_ != Answer::kNone) {
    return;
  }
  keep_alive_ = keep_alive_ && !response.close && !host_.draining();
  const HeadFraming framing{
      .body_bytes = static_cast<int64_t>(response.body.size()),
      .close = !keep_alive_,
      .request_id = head_.request_id};
  answer_ = Answer::kComplete;
  Queue(FormatHead(response, framing, host_.clock().Now()));
  if (head_.method != "HEAD" && response.status != 204) {
    Queue(response.body);
  }
  Flush();
}

void Connection::StartStream(uint64_t serial, HttpResponse head,
                             std::string filler) {
  if (!Current(serial) || answer_ != Answer::kNone) {
    return;
  }
  chunked_ = head_.minor_version == 1;
  keep_alive_ = keep_alive_ && chunked_ && !head.close && !host_.draining();
  const HeadFraming framing{.chunked = chunked_,
                            .with_length = false,
                            .close = !keep_alive_,
                            .request_id = head_.request_id};
  answer_ = Answer::kStreaming;
  filler_ = std::move(filler);
  Queue(FormatHead(head, framing, host_.clock().Now()));
  Flush();
}

void Connection::WriteStream(uint64_t serial, absl::string_view data) {
  if (!Current(serial) || answer_ != Answer::kStreaming || data.empty()) {
    return;
  }
  Queue(chunked_ ? FormatChunk(data) : std::string(data));
  Flush();
}

void Connection::EndStream(uint64_t serial) {
  if (!Current(serial) || answer_ != Answer::kStreaming) {
    return;
  }
  answer_ = Answer::kComplete;
  if (chunked_) {
    Queue(kLastChunk);
  }
  Flush();
}

void Connection::AbortStream(uint64_t serial) {
  if (Current(serial)) {
    Close();
  }
}

void Connection::SetGone(uint64_t serial, std::function<void()> gone) {
  if (Current(serial) && !input_ended_) {
    gone_ = std::move(gone);
    return;
  }
  const bool over = serial != serial_ || answer_ == Answer::kComplete;
  if (over && state_ != State::kClosed) {
    return;
  }
  gone();
  Close();
}

void Connection::Queue(absl::string_view bytes) {
  output_.append(bytes.data(), bytes.size());
}

// Starts the next write, or ends the answer when all of it is written.
void Connection::Flush() {
  if (state_ == State::kClosed || write_pending_) {
    // A whole answer may be larger than what is allowed to pile up in a stream.
    if (state_ != State::kClosed && answer_ == Answer::kStreaming &&
        static_cast<int64_t>(output_.size()) >
            host_.limits().output_bytes_max) {
      Close();
    }
    return;
  }
  if (written_ == writing_.size()) {
    writing_ = std::exchange(output_, std::string());
    written_ = 0;
  }
  if (writing_.empty()) {
    if (state_ == State::kAnswering && answer_ == Answer::kComplete) {
      FinishAnswer();
    }
    return;
  }
  write_pending_ = true;
  write_progress_ = host_.clock().Monotonic();
  const size_t bytes = std::min(kWriteBytesMax, writing_.size() - written_);
  stream_->Write(
      boost::asio::const_buffer(writing_.data() + written_, bytes),
      [self = shared_from_this()](const error_code& error, size_t done) {
        self->OnWritten(error, done);
      });
}

void Connection::OnWritten(const error_code& error, size_t bytes) {
  write_pending_ = false;
  if (state_ == State::kClosed) {
    return;
  }
  if (error) {
    Close();
    return;
  }
  written_ += bytes;
  Flush();
}

void Connection::FinishAnswer() {
  gone_ = nullptr;
  host_.HoldBody(-std::exchange(held_bytes_, 0));
  answer_ = Answer::kNone;
  reused_ = true;
  if (!keep_alive_) {
    stream_->EndSending();
    Enter(State::kLinger);
    if (input_ended_) {
      Close();
    }
    Read();
    return;
  }
  Enter(State::kHead);
  // Posted, so that a flood of pipelined requests neither recurses nor keeps
  // the loop from others.
  boost::asio::post(host_.loop(), [self = shared_from_this()] {
    if (self->state_ == State::kHead) {
      self->Process();
    }
  });
}

void Connection::Refuse(int status, absl::string_view why) {
  head_.method = parser_->request().method;
  head_.minor_version = 1;
  head_.request_id = CleanRequestId(parser_->request().Header("x-request-id"));
  if (head_.request_id.empty()) {
    head_.request_id = host_.NewRequestId();
  }
  keep_alive_ = false;
  answer_ = Answer::kNone;
  ++serial_;
  input_.clear();
  Enter(State::kAnswering);
  Send(serial_, host_.handler().Refusal(status, why));
  Read();
}

void Connection::NotifyGone() {
  if (auto gone = std::exchange(gone_, nullptr)) {
    gone();
  }
}

void Connection::Close() {
  if (state_ == State::kClosed) {
    return;
  }
  const auto self = shared_from_this();  // Forget may drop the last owner
  Enter(State::kClosed);
  stream_->Close();
  host_.HoldBody(-std::exchange(held_bytes_, 0));
  NotifyGone();
  host_.Forget(*this);
}

void Connection::CloseIfIdle() {
  if (idle() || state_ == State::kHandshake) {
    Close();
  }
}

void Connection::Sweep(absl::Duration now) {
  const HttpLimits& limits = host_.limits();
  if (write_pending_ && now - write_progress_ > limits.write_stall) {
    Close();
    return;
  }
  switch (state_) {
    case State::kHandshake:
      if (now - since_ > limits.handshake) {
        Close();
      }
      return;
    case State::kHead:
      if (!parser_->started()) {
        if (now - since_ > (reused_ ? limits.idle : limits.head)) {
          Close();
        }
      } else if (now - head_since_ > limits.head) {
        Refuse(408, "the request's head did not come in time");
      }
      return;
    case State::kBody:
      if (now - since_ > limits.body + absl::Seconds(parser_->body_bytes() /
                                                     kBodyBytesPerSecond)) {
        Refuse(408, "the request's body did not come in time");
      }
      return;
    case State::kAnswering:
      if (answer_ == Answer::kStreaming && !filler_.empty() &&
          !write_pending_ && now - write_progress_ > limits.filler_after) {
        WriteStream(serial_, filler_);
      }
      return;
    case State::kLinger:
      if (now - since_ > limits.linger) {
        Close();
      }
      return;
    case State::kClosed:
      return;
  }
}

}  // namespace millrace::coordinator
