#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace millrace::transport {

// Little-endian loads and stores at any alignment. Written byte by byte so that
// the wire is the same on every host; compilers make one move of it.
template <typename T>
inline void StoreLe(std::byte* to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    to[i] = static_cast<std::byte>(value >> (8 * i));
  }
}

template <typename T>
[[nodiscard]] inline T LoadLe(const std::byte* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value |
                           static_cast<T>(static_cast<T>(from[i]) << (8 * i)));
  }
  return value;
}

inline void StoreFloat(std::byte* to, float value) {
  StoreLe<uint32_t>(to, std::bit_cast<uint32_t>(value));
}

[[nodiscard]] inline float LoadFloat(const std::byte* from) {
  return std::bit_cast<float>(LoadLe<uint32_t>(from));
}

}  // namespace millrace::transport
