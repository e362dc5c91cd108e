#include "stage-worker/runtime/mapped_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/error.h"
#include "base/quantity.h"

namespace millrace::worker {
namespace {

constexpr int64_t kPageBytes = 4096;
// Touched between two questions whether to go on: some milliseconds.
constexpr int64_t kTouchBytes = 4 << 20;

}  // namespace

absl::StatusOr<MappedMemory> MappedMemory::Map(int64_t bytes,
                                               absl::string_view remedy) {
  if (bytes == 0) {
    return MappedMemory();
  }
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, "memory",
        absl::StrCat(HumanSize(bytes), " cannot be had: ", ErrnoText(errno)),
        remedy);
  }
  madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return MappedMemory(static_cast<std::byte*>(data), bytes);
}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) {
    munmap(data_, static_cast<size_t>(bytes_));
  }
}

absl::Status MappedMemory::Touch(ThreadPool& pool,
                                 const std::function<bool()>& cancelled) {
  std::atomic<bool> stop{false};
  pool.Run((bytes_ + kTouchBytes - 1) / kTouchBytes, [&](int64_t chunk, int) {
    if (cancelled && !stop.load(std::memory_order_relaxed) && cancelled()) {
      stop.store(true, std::memory_order_relaxed);
    }
    const int64_t begin = chunk * kTouchBytes;
    const int64_t end = std::min(bytes_, begin + kTouchBytes);
    for (int64_t at = begin; at < end && !stop.load(std::memory_order_relaxed);
         at += kPageBytes) {
      data_[at] = std::byte{0};
    }
  });
  return stop ? absl::CancelledError("loading was interrupted")
              : absl::OkStatus();
}

std::byte* Carver::Take(int64_t bytes) {
  std::byte* piece = data_ + used_;
  used_ += (bytes + 63) / 64 * 64;
  MILLRACE_CHECK(used_ <= bytes_);
  return piece;
}

}  // namespace millrace::worker
