#include "transport/heap_frame_buffer.h"

#include <cstring>
#include <new>

namespace millrace::transport {
namespace {

constexpr std::align_val_t kAlign{64};

class HeapFrameBuffer final : public FrameBuffer {
 public:
  explicit HeapFrameBuffer(size_t size)
      : size_(size),
        data_(static_cast<std::byte*>(::operator new(size, kAlign))) {
    // Resident from the start: a plan counts it, and the first long frame
    // meets no page faults.
    std::memset(data_, 0, size);
  }
  ~HeapFrameBuffer() override { ::operator delete(data_, kAlign); }
  HeapFrameBuffer(const HeapFrameBuffer&) = delete;
  HeapFrameBuffer& operator=(const HeapFrameBuffer&) = delete;

  absl::Span<std::byte> bytes() override {
    return absl::Span<std::byte>(data_, size_);
  }

 private:
  const size_t size_;
  std::byte* const data_;
};

}  // namespace

std::unique_ptr<FrameBuffer> MakeHeapFrameBuffer(int64_t bytes_max) {
  return std::make_unique<HeapFrameBuffer>(static_cast<size_t>(bytes_max));
}

}  // namespace millrace::transport
