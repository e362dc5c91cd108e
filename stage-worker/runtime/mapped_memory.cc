#include "stage-worker/runtime/mapped_memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/error.h"
#include "base/quantity.h"

namespace millrace::worker {
namespace {

constexpr int64_t kPageBytes = 4096;

}  // namespace

absl::StatusOr<MappedMemory> MappedMemory::Map(int64_t bytes) {
  if (bytes == 0) {
    return MappedMemory();
  }
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, "memory",
        absl::StrCat(HumanSize(bytes), " cannot be had: ", ErrnoText(errno)),
        "give this stage fewer layers, or lower --context or "
        "--concurrency");
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

void MappedMemory::Touch() {
  for (int64_t at = 0; at < bytes_; at += kPageBytes) {
    data_[at] = std::byte{0};
  }
}

std::byte* Carver::Take(int64_t bytes) {
  std::byte* piece = data_ + used_;
  used_ += (bytes + 63) / 64 * 64;
  MILLRACE_CHECK(used_ <= bytes_);
  return piece;
}

}  // namespace millrace::worker
