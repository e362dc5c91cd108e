#pragma once

#include <cstdint>

// A register of 512 bits as two of AVX2, or as an array.
namespace millrace::emulated {
namespace {

struct FloatHalves {
  __m256 low;
  __m256 high;
};
struct IntHalves {
  __m256i low;
  __m256i high;
};

inline FloatHalves Split(__m512 a) {
  FloatHalves halves;
  __builtin_memcpy(&halves, &a, sizeof(halves));
  return halves;
}
inline IntHalves Split(__m512i a) {
  IntHalves halves;
  __builtin_memcpy(&halves, &a, sizeof(halves));
  return halves;
}
inline __m512 Join(__m256 low, __m256 high) {
  const FloatHalves halves = {low, high};
  __m512 whole;
  __builtin_memcpy(&whole, &halves, sizeof(whole));
  return whole;
}
inline __m512i Join(__m256i low, __m256i high) {
  const IntHalves halves = {low, high};
  __m512i whole;
  __builtin_memcpy(&whole, &halves, sizeof(whole));
  return whole;
}

// The elements of a register of any width.
template <typename T, int kNum>
struct Elements {
  T at[kNum];
};

template <typename T, typename Register>
inline Elements<T, sizeof(Register) / sizeof(T)> ElementsOf(Register a) {
  Elements<T, sizeof(Register) / sizeof(T)> elements;
  __builtin_memcpy(&elements, &a, sizeof(a));
  return elements;
}

template <typename Register, typename T, int kNum>
inline Register RegisterOf(const Elements<T, kNum>& elements) {
  static_assert(sizeof(Register) == sizeof(elements));
  Register whole;
  __builtin_memcpy(&whole, &elements, sizeof(whole));
  return whole;
}

}  // namespace
}  // namespace millrace::emulated
