#include "transport/tcp/tcp_writer.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "transport/byte_order.h"
#include "transport/tcp/tcp_socket.h"

namespace millrace::transport {
namespace {

void PutRecord(std::byte* to, RecordType type, uint32_t argument,
               uint64_t length) {
  using L = RecordLayout;
  StoreLe<uint32_t>(to + L::kType, static_cast<uint32_t>(type));
  StoreLe<uint32_t>(to + L::kArgument, argument);
  StoreLe<uint64_t>(to + L::kLength, length);
}

}  // namespace

TcpWriter::TcpWriter(uint32_t window, uint32_t peer_window)
    : sends_(window), batch_(kBatchFrames), credits_(peer_window) {}

void TcpWriter::AddPart(const void* data, size_t bytes) {
  if (bytes > 0) {
    parts_[num_parts_++] = {const_cast<void*>(data), bytes};
  }
}

void TcpWriter::BuildBatch() {
  num_parts_ = 0;
  part_ = 0;
  size_t num_heads = 0;
  if (credits_to_grant_ > 0) {
    Record& head = heads_[num_heads++];
    PutRecord(head.data(), RecordType::kCredit, credits_to_grant_, 0);
    AddPart(head.data(), head.size());
    credits_to_grant_ = 0;
  }
  while (!sends_.empty() && !batch_.full() && credits_.TryTake()) {
    Completion post = sends_.Pop();
    Record& head = heads_[num_heads++];
    const size_t bytes = static_cast<size_t>(post.bytes);
    PutRecord(head.data(), RecordType::kFrame, 0, bytes);
    AddPart(head.data(), head.size());
    AddPart(post.buffer->bytes().data(), bytes);
    batch_.Push(std::move(post));
  }
}

void TcpWriter::Advance(size_t bytes) {
  while (bytes > 0) {
    iovec& part = parts_[part_];
    const size_t used = std::min(bytes, part.iov_len);
    part.iov_base = static_cast<std::byte*>(part.iov_base) + used;
    part.iov_len -= used;
    bytes -= used;
    if (part.iov_len == 0) {
      ++part_;
    }
  }
}

absl::Status TcpWriter::WriteTo(int socket, const std::string& peer,
                                bool only_rest,
                                const std::function<void(Completion)>& done) {
  for (;;) {
    if (!mid_batch()) {
      while (!batch_.empty()) {
        done(batch_.Pop());
      }
      if (only_rest) {
        return absl::OkStatus();
      }
      BuildBatch();
      if (!mid_batch()) {
        return absl::OkStatus();
      }
    }
    msghdr message = {};
    message.msg_iov = &parts_[part_];
    message.msg_iovlen = num_parts_ - part_;
    const ssize_t written = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (written >= 0) {
      Advance(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      return absl::OkStatus();
    } else if (errno != EINTR) {
      return SocketError("send", peer, errno);
    }
  }
}

void TcpWriter::WriteClose(int socket, const absl::Status& reason) {
  MILLRACE_DCHECK(!mid_batch());
  std::array<std::byte, RecordLayout::kBytes + kCloseMessageBytesMax> bytes;
  const size_t length =
      std::min(reason.message().size(), kCloseMessageBytesMax);
  PutRecord(bytes.data(), RecordType::kClose,
            static_cast<uint32_t>(reason.code()), length);
  if (length > 0) {
    std::memcpy(bytes.data() + RecordLayout::kBytes, reason.message().data(),
                length);
  }
  // One try: a peer that does not read learns of the end, not of the reason.
  [[maybe_unused]] const ssize_t sent =
      send(socket, bytes.data(), RecordLayout::kBytes + length, MSG_NOSIGNAL);
}

bool TcpWriter::TakeUnsent(Completion& post) {
  if (!batch_.empty()) {
    post = batch_.Pop();
    return true;
  }
  if (!sends_.empty()) {
    post = sends_.Pop();
    return true;
  }
  return false;
}

}  // namespace millrace::transport
