#pragma once

#include "kernels/vector/lanes.h"

namespace millrace::kernels {
namespace {

constexpr float kInfinity = __builtin_inff();

// scalar::Exp in every lane; a NaN passes through the polynomial.
inline Lanes Exp(Lanes x) {
  const Lanes n = Rint(x * Set1(0x1.715476p+0f));
  Lanes r = Fma(n, Set1(-0x1.62e4p-1f), x);
  r = Fma(n, Set1(-0x1.7f7d1cp-20f), r);
  Lanes p = Set1(0x1.6d10fep-10f);
  p = Fma(p, r, Set1(0x1.120b64p-7f));
  p = Fma(p, r, Set1(0x1.55551ap-5f));
  p = Fma(p, r, Set1(0x1.5554dep-3f));
  p = Fma(p, r, Set1(0x1p-1f));
  p = Fma(p, r, Set1(1.0f));
  p = Fma(p, r, Set1(1.0f));
  const Lanes e = TimesPowerOfTwo(p, n);
  const Lanes bounded = SelectLess(x, Set1(-87.0f), Set1(0.0f), e);
  return SelectLess(Set1(88.0f), x, Set1(kInfinity), bounded);
}

inline float Exp(float x) { return FirstLane(Exp(Set1(x))); }

// scalar::Silu in every lane.
inline Lanes Silu(Lanes x) { return x / (Set1(1.0f) + Exp(Negate(x))); }

}  // namespace
}  // namespace millrace::kernels
