#pragma once

#include "kernels/router/router.h"
#include "kernels/vector/functions_vector.h"

namespace millrace::kernels {
namespace {

// No probability: marks an expert as chosen.
constexpr float kTaken = -1.0f;

inline Lanes LoadUpTo16(const float* x, int64_t n, Lanes other) {
  return n >= 16 ? Load(x) : KeepRange(LoadFirst(x, n), 0, n, other);
}

// p = softmax(logits); false when it holds a NaN.
inline bool Softmax(const float* logits, int64_t n, float* p) {
  const Lanes lowest = Set1(-kInfinity);
  Lanes max = lowest;
  for (int64_t i = 0; i < n; i += 16) {
    max = Max(LoadUpTo16(logits + i, n - i, lowest), max);
  }
  const Lanes shift = Set1(LargestLane(max));
  Lanes sum = Set1(0.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const int64_t left = n - i < 16 ? n - i : 16;
    const Lanes e = Exp(LoadUpTo16(logits + i, left, lowest) - shift);
    sum = sum + KeepRange(e, 0, left, Set1(0.0f));
    StoreFirst(e, p + i, left);
  }
  const Lanes total = Set1(TreeSum(sum));
  uint32_t nan = 0;
  for (int64_t i = 0; i < n; i += 16) {
    const int64_t left = n - i < 16 ? n - i : 16;
    const Lanes share = LoadFirst(p + i, left) / total;
    nan |= NanMask(KeepRange(share, 0, left, Set1(0.0f)));
    StoreFirst(share, p + i, left);
  }
  return nan == 0;
}

// The first of the largest; no NaN among them, one at least not taken.
inline int64_t FirstLargest(const float* p, int64_t n) {
  const Lanes taken = Set1(kTaken);
  Lanes max = taken;
  for (int64_t i = 0; i < n; i += 16) {
    max = Max(max, LoadUpTo16(p + i, n - i, taken));
  }
  const Lanes largest = Set1(LargestLane(max));
  for (int64_t i = 0; i < n; i += 16) {
    const uint32_t equal = EqualMask(LoadUpTo16(p + i, n - i, taken), largest);
    if (equal != 0) {
      return i + __builtin_ctz(equal);
    }
  }
  return 0;
}

// The same with NaN as the last in order.
inline int64_t FirstLargestOrNan(const float* p, int64_t n) {
  int64_t best = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (p[i] == kTaken) {
      continue;
    }
    if (best < 0 || p[i] > p[best] ||
        (__builtin_isnan(p[best]) && !__builtin_isnan(p[i]))) {
      best = i;
    }
  }
  return best;
}

inline void SoftmaxRouter(const SoftmaxRouterArgs& args, int64_t row_begin,
                          int64_t row_end) {
  const int64_t n = args.num_experts;
  for (int64_t row = row_begin; row < row_end; ++row) {
    float* p = args.scratch;
    const bool ordered = Softmax(args.logits + row * args.logits_stride, n, p);
    int32_t* experts = args.experts + row * args.num_chosen;
    float* weights = args.weights + row * args.num_chosen;
    float sum = 0.0f;
    for (int64_t j = 0; j < args.num_chosen; ++j) {
      const int64_t best =
          ordered ? FirstLargest(p, n) : FirstLargestOrNan(p, n);
      experts[j] = static_cast<int32_t>(best);
      weights[j] = p[best];
      sum += p[best];
      p[best] = kTaken;
    }
    for (int64_t j = 0; args.renormalise && j < args.num_chosen; ++j) {
      weights[j] = weights[j] / sum;
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
