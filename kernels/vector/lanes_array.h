#pragma once

#include <cstdint>

#include "kernels/vector/elementary.h"
#include "kernels/vector/half.h"

namespace millrace::kernels {
namespace {

// Sixteen floats in memory: what the operations mean, and the version for
// compilers that know no other.
struct Lanes {
  float l[16];
};

// Register arrays of the attention loops: vectors that fit beside the operands.
constexpr int kAccumulators = 6;
// Queries whose state stays in registers together.
constexpr int kQueriesMax = 4;

template <typename Function>
Lanes EachLane(Function f) {
  Lanes r;
  for (int i = 0; i < 16; ++i) {
    r.l[i] = f(i);
  }
  return r;
}
// Bit i is f(i).
template <typename Function>
uint32_t EachBit(Function f) {
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) {
    mask |= (f(i) ? 1u : 0u) << i;
  }
  return mask;
}

inline Lanes Set1(float x) {
  return EachLane([&](int) { return x; });
}
inline Lanes Load(const float* x) {
  return EachLane([&](int i) { return x[i]; });
}
// The first n lanes, 0 in the others; nothing behind them is read.
inline Lanes LoadFirst(const float* x, int64_t n) {
  return EachLane([&](int i) { return i < n ? x[i] : 0.0f; });
}
inline void StoreFirst(Lanes a, float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    x[i] = a.l[i];
  }
}
inline void Store(Lanes a, float* x) { StoreFirst(a, x, 16); }
inline float FirstLane(Lanes a) { return a.l[0]; }

inline Lanes operator+(Lanes a, Lanes b) {
  return EachLane([&](int i) { return a.l[i] + b.l[i]; });
}
inline Lanes operator-(Lanes a, Lanes b) {
  return EachLane([&](int i) { return a.l[i] - b.l[i]; });
}
inline Lanes operator*(Lanes a, Lanes b) {
  return EachLane([&](int i) { return a.l[i] * b.l[i]; });
}
inline Lanes operator/(Lanes a, Lanes b) {
  return EachLane([&](int i) { return a.l[i] / b.l[i]; });
}
inline Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return EachLane([&](int i) { return std::fma(a.l[i], b.l[i], c.l[i]); });
}
inline Lanes Negate(Lanes a) {
  return EachLane([&](int i) { return -a.l[i]; });
}
inline Lanes Rint(Lanes a) {
  return EachLane([&](int i) { return std::rint(a.l[i]); });
}
// Which of two equal zeros comes out, and whether a NaN does, is open.
inline Lanes Max(Lanes a, Lanes b) {
  return EachLane([&](int i) { return a.l[i] > b.l[i] ? a.l[i] : b.l[i]; });
}

// p * 2^n for integers n where neither p nor the product is subnormal; NaN
// where p is, anything where n is out of range.
inline Lanes TimesPowerOfTwo(Lanes p, Lanes n) {
  return EachLane([&](int i) {
    const float clamped = n.l[i] > -200.0f && n.l[i] < 200.0f ? n.l[i] : 0.0f;
    const auto exponent = static_cast<uint32_t>(static_cast<int32_t>(clamped))
                          << 23;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(p.l[i]) + exponent);
  });
}
// a < b ? yes : no; `no` where one is NaN.
inline Lanes SelectLess(Lanes a, Lanes b, Lanes yes, Lanes no) {
  return EachLane([&](int i) { return a.l[i] < b.l[i] ? yes.l[i] : no.l[i]; });
}
// `other` in the lanes outside [begin, end), which may lie outside [0, 16].
inline Lanes KeepRange(Lanes a, int64_t begin, int64_t end, Lanes other) {
  return EachLane(
      [&](int i) { return i >= begin && i < end ? a.l[i] : other.l[i]; });
}
inline uint32_t EqualMask(Lanes a, Lanes b) {
  return EachBit([&](int i) { return a.l[i] == b.l[i]; });
}
inline uint32_t NanMask(Lanes a) {
  return EachBit([&](int i) { return std::isnan(a.l[i]); });
}
// Whether low <= bits without the sign < high in any lane; low > 0.
inline bool AnyMagnitudeIn(Lanes a, uint32_t low, uint32_t high) {
  return EachBit([&](int i) {
           const uint32_t magnitude =
               std::bit_cast<uint32_t>(a.l[i]) & 0x7fffffffu;
           return magnitude >= low && magnitude < high;
         }) != 0;
}

inline float TreeSum(Lanes a) { return scalar::TreeSum(a.l); }
// As Max.
inline float LargestLane(Lanes a) {
  float largest = a.l[0];
  for (const float lane : a.l) {
    largest = lane > largest ? lane : largest;
  }
  return largest;
}

// {a0, a0, a2, a2, ...} and {a1, a1, a3, a3, ...}.
inline Lanes DuplicateEven(Lanes a) {
  return EachLane([&](int i) { return a.l[i & ~1]; });
}
inline Lanes DuplicateOdd(Lanes a) {
  return EachLane([&](int i) { return a.l[i | 1]; });
}

// Sixteen 16-bit numbers.
struct Halves {
  uint16_t h[16];
};
inline Halves LoadFirstHalves(const void* p, int64_t n) {
  Halves halves = {};
  __builtin_memcpy(halves.h, p, static_cast<size_t>(n) * sizeof(uint16_t));
  return halves;
}
inline Halves LoadHalves(const void* p) { return LoadFirstHalves(p, 16); }
inline Lanes F32FromF16(Halves h) {
  return EachLane([&](int i) { return scalar::F32FromF16(h.h[i]); });
}
inline Lanes F32FromBf16(Halves h) {
  return EachLane([&](int i) { return scalar::F32FromBf16(h.h[i]); });
}
inline void StoreF16(Lanes a, uint16_t* h) {
  for (int i = 0; i < 16; ++i) {
    h[i] = scalar::F16FromF32(a.l[i]);
  }
}
inline void StoreBf16(Lanes a, uint16_t* h) {
  for (int i = 0; i < 16; ++i) {
    h[i] = scalar::Bf16FromF32(a.l[i]);
  }
}

// Sixteen signed bytes as floats, and back: integers in [-128, 127].
inline Lanes F32FromFirstBytes(const void* p, int64_t n) {
  int8_t bytes[16] = {};
  __builtin_memcpy(bytes, p, static_cast<size_t>(n));
  return EachLane([&](int i) { return static_cast<float>(bytes[i]); });
}
inline Lanes F32FromBytes(const void* p) { return F32FromFirstBytes(p, 16); }
inline void StoreBytes(Lanes a, int8_t* bytes) {
  for (int i = 0; i < 16; ++i) {
    bytes[i] = static_cast<int8_t>(a.l[i]);
  }
}

inline float SquareRoot(float x) { return std::sqrt(x); }

}  // namespace
}  // namespace millrace::kernels
