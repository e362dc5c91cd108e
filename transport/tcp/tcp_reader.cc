#include "transport/tcp/tcp_reader.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "transport/byte_order.h"
#include "transport/tcp/tcp_socket.h"

namespace millrace::transport {
namespace {

// Small frames and credits arrive many to a read; large frames go to their
// buffer directly but for the part that came with their head.
constexpr size_t kStagingBytes = 64 << 10;

// Reads per call, so that posts and writes get their turn on a busy link.
constexpr int kReadsMax = 16;

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return MakeError(absl::StatusCode::kDataLoss, "channel",
                   absl::StrCat(parts...));
}

}  // namespace

TcpReader::TcpReader(int64_t frame_bytes_max, Sink& sink)
    : frame_bytes_max_(frame_bytes_max), sink_(sink), staging_(kStagingBytes) {}

absl::Status TcpReader::ReadFrom(int socket, const std::string& peer) {
  for (int i = 0; i < kReadsMax; ++i) {
    const absl::Span<std::byte> direct = payload_ == Payload::kNone
                                             ? absl::Span<std::byte>()
                                             : into_.subspan(into_filled_);
    iovec parts[2] = {{direct.data(), direct.size()},
                      {staging_.data(), staging_.size()}};
    const ssize_t got = readv(socket, parts, 2);
    if (got == 0) {
      return MakeError(absl::StatusCode::kUnavailable, peer,
                       "the peer ended the connection");
    }
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR) {
        return absl::OkStatus();
      }
      return SocketError("receive", peer, errno);
    }
    const size_t bytes = static_cast<size_t>(got);
    const size_t placed = std::min(bytes, direct.size());
    into_filled_ += placed;
    if (placed > 0 && into_filled_ == into_.size()) {
      MILLRACE_RETURN_IF_ERROR(EndPayload());
    }
    MILLRACE_RETURN_IF_ERROR(
        Take(absl::MakeConstSpan(staging_.data(), bytes - placed)));
    if (bytes < direct.size() + staging_.size()) {
      return absl::OkStatus();  // the socket is empty
    }
  }
  return absl::OkStatus();
}

absl::Status TcpReader::Take(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    size_t used = 0;
    if (payload_ == Payload::kNone) {
      used = std::min(bytes.size(), head_.size() - head_filled_);
      std::memcpy(&head_[head_filled_], bytes.data(), used);
      head_filled_ += used;
      if (head_filled_ == head_.size()) {
        head_filled_ = 0;
        MILLRACE_RETURN_IF_ERROR(BeginRecord());
      }
    } else {
      used = std::min(bytes.size(), into_.size() - into_filled_);
      std::memcpy(into_.data() + into_filled_, bytes.data(), used);
      into_filled_ += used;
      if (into_filled_ == into_.size()) {
        MILLRACE_RETURN_IF_ERROR(EndPayload());
      }
    }
    bytes.remove_prefix(used);
  }
  return absl::OkStatus();
}

absl::Status TcpReader::BeginRecord() {
  using L = RecordLayout;
  const uint32_t type = LoadLe<uint32_t>(&head_[L::kType]);
  const uint32_t argument = LoadLe<uint32_t>(&head_[L::kArgument]);
  const uint64_t length = LoadLe<uint64_t>(&head_[L::kLength]);
  switch (static_cast<RecordType>(type)) {
    case RecordType::kFrame:
      return BeginFrame(length);
    case RecordType::kCredit:
      return length == 0 ? sink_.Credits(argument)
                         : Broken("a credit of ", length, " bytes");
    case RecordType::kClose:
      if (length > close_message_.size() || argument == 0 ||
          argument >
              static_cast<uint32_t>(absl::StatusCode::kUnauthenticated)) {
        return Broken("a close record with code ", argument, " and ", length,
                      " bytes");
      }
      close_code_ = argument;
      into_ = absl::MakeSpan(close_message_).subspan(0, length);
      into_filled_ = 0;
      payload_ = Payload::kClose;
      return length == 0 ? EndPayload() : absl::OkStatus();
  }
  return Broken("unknown record ", type);
}

absl::Status TcpReader::BeginFrame(uint64_t length) {
  if (length > static_cast<uint64_t>(frame_bytes_max_)) {
    return Broken("a frame of ", length, " bytes, at most ", frame_bytes_max_);
  }
  into_ = sink_.FrameBegins(static_cast<int64_t>(length));
  if (into_.data() == nullptr) {
    return Broken("a frame without a credit");
  }
  into_filled_ = 0;
  payload_ = Payload::kFrame;
  return length == 0 ? EndPayload() : absl::OkStatus();
}

absl::Status TcpReader::EndPayload() {
  const Payload payload = payload_;
  payload_ = Payload::kNone;
  if (payload == Payload::kFrame) {
    sink_.FrameEnds(static_cast<int64_t>(into_.size()));
    return absl::OkStatus();
  }
  peer_closed_ = true;
  const absl::string_view message(reinterpret_cast<const char*>(into_.data()),
                                  into_.size());
  return absl::Status(static_cast<absl::StatusCode>(close_code_),
                      Printable(message, kCloseMessageBytesMax));
}

}  // namespace millrace::transport
