#pragma once

#include <cstdint>

namespace millrace::model {

// How large keys and values are when stored: bytes of an element, and of the
// scale that each 32 dims of a head share; the last of a head may be fewer.
struct KvFormat {
  int64_t element_bytes = 2;
  int64_t scale_bytes = 0;

  bool operator==(const KvFormat&) const = default;
};
inline constexpr KvFormat kKvF32 = {.element_bytes = 4, .scale_bytes = 0};
inline constexpr KvFormat kKv16Bit = {.element_bytes = 2, .scale_bytes = 0};
inline constexpr KvFormat kKvInt8 = {.element_bytes = 1, .scale_bytes = 4};

// Bytes of the key or of the value of one head at one position.
constexpr int64_t KvHeadBytes(const KvFormat& format, int64_t head_dim) {
  constexpr int64_t kScaleDims = 32;
  return head_dim * format.element_bytes +
         (head_dim + kScaleDims - 1) / kScaleDims * format.scale_bytes;
}

}  // namespace millrace::model
