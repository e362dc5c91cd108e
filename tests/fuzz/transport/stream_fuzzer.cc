// Any bytes after a hello: the reader delivers frames within the posted buffers
// and the credits granted, or ends with an error. Also any bytes as a hello.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "transport/flow_control.h"
#include "transport/tcp/tcp_handshake.h"
#include "transport/tcp/tcp_reader.h"

namespace millrace::transport {
namespace {

constexpr int64_t kFrameBytesMax = 256;

class Sink final : public TcpReader::Sink {
 public:
  absl::Span<std::byte> FrameBegins(int64_t bytes) override {
    MILLRACE_CHECK(bytes >= 0 && bytes <= kFrameBytesMax && !in_frame_);
    if (posted_ == 0) {
      return {};
    }
    in_frame_ = true;
    return absl::MakeSpan(buffer_).subspan(0, static_cast<size_t>(bytes));
  }
  void FrameEnds(int64_t bytes) override {
    MILLRACE_CHECK(in_frame_ && bytes <= kFrameBytesMax);
    in_frame_ = false;
    --posted_;
  }
  absl::Status Credits(uint32_t credits) override {
    const absl::Status status = window_.Grant(credits);
    MILLRACE_CHECK(window_.available() <= window_.window());
    return status;
  }

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kFrameBytesMax);
  CreditWindow window_{8};
  int posted_ = 3;
  bool in_frame_ = false;
};

void Run(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) {
    std::memcpy(bytes.data(), data, size);
  }
  if (size == HelloLayout::kBytes) {
    HelloBytes hello_bytes;
    std::copy(bytes.begin(), bytes.end(), hello_bytes.begin());
    Hello hello;
    if (DecodeHello(hello_bytes, hello).ok()) {
      MILLRACE_CHECK(EncodeHello(hello) == hello_bytes);
    }
  }
  // Cut into pieces whose sizes follow from the input itself.
  Sink sink;
  TcpReader reader(kFrameBytesMax, sink);
  absl::Span<const std::byte> rest = bytes;
  while (!rest.empty()) {
    const size_t piece =
        std::min(rest.size(), size_t{1} + static_cast<size_t>(rest[0]) % 40);
    if (!reader.Take(rest.subspan(0, piece)).ok()) {
      return;
    }
    rest.remove_prefix(piece);
  }
}

}  // namespace
}  // namespace millrace::transport

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::transport::Run(data, size);
  return 0;
}
