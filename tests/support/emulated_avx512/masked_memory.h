#pragma once

#include "tests/support/emulated_avx512/halves.h"

// Loads and stores under a mask touch no memory of other elements: a test may
// end its buffer there.
namespace millrace::emulated {
namespace {

template <typename Register, typename T>
inline Register LoadMasked(uint64_t mask, const void* from) {
  constexpr int kNum = sizeof(Register) / sizeof(T);
  Elements<T, kNum> elements = {};
  for (int i = 0; i < kNum; ++i) {
    if (mask >> i & 1) {
      __builtin_memcpy(&elements.at[i],
                       static_cast<const char*>(from) + i * sizeof(T),
                       sizeof(T));
    }
  }
  return RegisterOf<Register>(elements);
}

template <typename T, typename Register>
inline void StoreMasked(void* to, uint64_t mask, Register a) {
  const auto elements = ElementsOf<T>(a);
  for (int i = 0; i < static_cast<int>(sizeof(Register) / sizeof(T)); ++i) {
    if (mask >> i & 1) {
      __builtin_memcpy(static_cast<char*>(to) + i * sizeof(T), &elements.at[i],
                       sizeof(T));
    }
  }
}

}  // namespace
}  // namespace millrace::emulated

#define _mm512_maskz_loadu_ps ::millrace::emulated::LoadMasked<__m512, float>
#define _mm256_maskz_loadu_epi16 \
  ::millrace::emulated::LoadMasked<__m256i, uint16_t>
#define _mm512_mask_storeu_ps ::millrace::emulated::StoreMasked<float>
