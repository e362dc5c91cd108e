// Any bytes: decoding ends in an error or in a frame whose encoding is the
// input again, so nothing outside the format is accepted.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "transport/byte_order.h"
#include "transport/frame.h"
#include "transport/frame_layout.h"
#include "transport/heap_frame_buffer.h"

namespace millrace::transport {
namespace {

constexpr FrameLimits kLimits = {.slots = 16,
                                 .rows_max = 32,
                                 .columns = 8,
                                 .positions_max = 1000,
                                 .vocab_size = 300,
                                 .ops_max = 8};

// Lets mutations through the header checksum, as a hostile peer would.
void Seal(absl::Span<std::byte> bytes) {
  using L = HeaderLayout;
  StoreLe<uint32_t>(bytes.data() + L::kMagic, kFrameMagic);
  StoreLe<uint16_t>(bytes.data() + L::kVersion, kFrameWireVersion);
  StoreLe<uint64_t>(bytes.data() + L::kBodyBytes, bytes.size() - L::kBytes);
  StoreLe<uint32_t>(bytes.data() + L::kHeaderCrc,
                    Crc32c(0, bytes.data(), L::kHeaderCrc));
}

void Run(const uint8_t* data, size_t size) {
  static const int64_t kBytesMax = kLimits.FrameBytesMax();
  size = std::min(size, static_cast<size_t>(kBytesMax));
  auto buffer = MakeHeapFrameBuffer(static_cast<int64_t>(size) + 1);
  const absl::Span<std::byte> bytes = buffer->bytes().subspan(0, size);
  if (size > 0) {
    std::memcpy(bytes.data(), data, size);
  }
  if (size >= HeaderLayout::kBytes) {
    Seal(bytes);
  }
  Frame frame;
  if (!DecodeFrame(bytes, kLimits, frame).ok()) {
    return;
  }
  const bool checksum = bytes[HeaderLayout::kFlags] != std::byte{0};
  auto again = MakeHeapFrameBuffer(kBytesMax);
  const int64_t encoded = EncodeFrame(frame, checksum, again->bytes());
  MILLRACE_CHECK(encoded == static_cast<int64_t>(size));
  MILLRACE_CHECK(std::memcmp(bytes.data(), again->bytes().data(), size) == 0);
}

}  // namespace
}  // namespace millrace::transport

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::transport::Run(data, size);
  return 0;
}
