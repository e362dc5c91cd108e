#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/thread_pool.h"

namespace millrace::worker {

// Anonymous memory from the system, zero-filled on first touch, given back
// whole when the object goes. Movable, one owner.
class MappedMemory {
 public:
  // Huge pages where the system has them: +10 % of streaming rate for weights
  // (Zen 4, two threads). kResourceExhausted when the system has not that much;
  // `remedy` is then its hint.
  static absl::StatusOr<MappedMemory> Map(
      int64_t bytes, absl::string_view remedy =
                         "free memory, or raise the limit of this process "
                         "(ulimit -v)");

  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  // Makes every page resident now instead of at its first use, with all threads
  // of `pool`. They ask `cancelled` (nullable) now and then; kCancelled soon
  // after it says true.
  absl::Status Touch(ThreadPool& pool, const std::function<bool()>& cancelled);

 private:
  MappedMemory(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Hands out 64-byte aligned pieces of a block from front to back. A bug when
// more is taken than there is: sizes come from model::StageBytesOf.
class Carver {
 public:
  Carver(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* Take(int64_t bytes);
  float* TakeFloats(int64_t count) {
    return reinterpret_cast<float*>(Take(count * 4));
  }
  int32_t* TakeInts(int64_t count) {
    return reinterpret_cast<int32_t*>(Take(count * 4));
  }
  [[nodiscard]] int64_t used() const { return used_; }

 private:
  std::byte* const data_;
  const int64_t bytes_;
  int64_t used_ = 0;
};

}  // namespace millrace::worker
