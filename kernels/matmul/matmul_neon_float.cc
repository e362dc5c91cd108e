#include <arm_neon.h>

#include "kernels/matmul/float_kernel.h"
#include "kernels/matmul/matmul_neon.h"

namespace millrace::kernels {
namespace {

// Sixteen lanes.
struct Four128 {
  float32x4_t q[4];
};

struct PairsNeon {
  Four128 even;
  Four128 odd;
};

struct FloatSourceNeon {
  using Sum = Four128;
  static Four128 Zero() {
    const float32x4_t zero = vdupq_n_f32(0);
    return {{zero, zero, zero, zero}};
  }
  static void Keep(const Four128& sum, float* to) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      vst1q_f32(to + 4 * i, sum.q[i]);
    }
  }
};

__attribute__((always_inline)) inline void FusedStep(Four128& sum,
                                                     const Four128& w,
                                                     float32x4_t x) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    sum.q[i] = vfmaq_f32(sum.q[i], w.q[i], x);
  }
}

inline uint32x4_t LoadWords(const std::byte* from) {
  return vld1q_u32(
      static_cast<const uint32_t*>(static_cast<const void*>(from)));
}
inline float32x4_t EvenOfPairs(uint32x4_t pairs) {
  return vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16));
}
inline float32x4_t OddOfPairs(uint32x4_t pairs) {
  return vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000)));
}

// bf16 below 2^-50 becomes +0 (kBf16FlushBelow).
inline uint32x4_t FlushTiny(uint32x4_t pairs) {
  const uint16x8_t bf16 = vreinterpretq_u16_u32(pairs);
  const uint16x8_t magnitude = vandq_u16(bf16, vdupq_n_u16(0x7fff));
  return vreinterpretq_u32_u16(
      vandq_u16(bf16, vcgeq_u16(magnitude, vdupq_n_u16(0x2680))));
}

struct F32Source : FloatSourceNeon {
  static constexpr WeightFormat kFormat = WeightFormat::kF32;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static constexpr int kColumns = 1;
  static constexpr int64_t kStepBytes = 64;
  static Four128 Load(const std::byte* from) {
    const float* w = static_cast<const float*>(static_cast<const void*>(from));
    return {
        {vld1q_f32(w), vld1q_f32(w + 4), vld1q_f32(w + 8), vld1q_f32(w + 12)}};
  }
  static void Add(Four128& sum, const Four128& w, const float* x, int64_t) {
    FusedStep(sum, w, vld1q_dup_f32(x));
  }
};

struct F16Source : F32Source {
  static constexpr WeightFormat kFormat = WeightFormat::kF16;
  static constexpr int64_t kStepBytes = 32;
  static Four128 Load(const std::byte* from) {
    Four128 w;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const auto* halves =
          static_cast<const uint16_t*>(static_cast<const void*>(from)) + 4 * i;
      w.q[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves)));
    }
    return w;
  }
};

struct Bf16ExactSource : FloatSourceNeon {
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static constexpr int kColumns = 2;
  static constexpr int64_t kStepBytes = 64;
  static PairsNeon Load(const std::byte* from) {
    PairsNeon w;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t pairs = LoadWords(from + 16 * i);
      w.even.q[i] = EvenOfPairs(pairs);
      w.odd.q[i] = OddOfPairs(pairs);
    }
    return w;
  }
  static void Add(Four128& sum, const PairsNeon& w, const float* x,
                  int64_t stride) {
    FusedStep(sum, w.even, vld1q_dup_f32(x));
    FusedStep(sum, w.odd, vld1q_dup_f32(x + stride));
  }
  static void AddLast(Four128& sum, const PairsNeon& w, const float* x) {
    FusedStep(sum, w.even, vld1q_dup_f32(x));
  }
};

// Two fused steps, never bfdot: that one rounds differently.
struct Bf16FastSource : Bf16ExactSource {
  static constexpr ActivationForm kForm = ActivationForm::kBf16;
  static PairsNeon Load(const std::byte* from) {
    PairsNeon w;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t pairs = FlushTiny(LoadWords(from + 16 * i));
      w.even.q[i] = EvenOfPairs(pairs);
      w.odd.q[i] = OddOfPairs(pairs);
    }
    return w;
  }
  static void Add(Four128& sum, const PairsNeon& w, const float* x, int64_t) {
    const uint32x4_t pair = vreinterpretq_u32_f32(vld1q_dup_f32(x));
    FusedStep(sum, w.odd, OddOfPairs(pair));
    FusedStep(sum, w.even, EvenOfPairs(pair));
  }
};

// Four tokens are sixteen registers of sums; more would leave too few for the
// weights of a pair of columns.
template <typename Source>
void FloatSlices(const PanelArgs& args) {
  for (int64_t begin = 0; begin < args.tokens; begin += 4) {
    PanelArgs slice = args;
    slice.panel += begin * static_cast<int64_t>(sizeof(float));
    slice.sums += begin * kTileRows;
    switch (args.tokens - begin) {
      case 1:
        FloatPanel<Source, 1, 1>(slice);
        break;
      case 2:
        FloatPanel<Source, 2, 1>(slice);
        break;
      case 3:
        FloatPanel<Source, 3, 1>(slice);
        break;
      default:
        FloatPanel<Source, 4, 1>(slice);
        break;
    }
  }
}

template <typename Source>
struct FloatKernelNeon {
  static constexpr WeightFormat kFormat = Source::kFormat;
  static constexpr ActivationForm kForm = Source::kForm;
  static int SideTiles(int64_t tokens) { return tokens <= 2 ? 2 : 1; }
  static PanelFn Choose(int64_t tokens, int num_tiles) {
    if (num_tiles == 2) {
      return tokens == 1 ? FloatPanel<Source, 1, 2> : FloatPanel<Source, 2, 2>;
    }
    return FloatSlices<Source>;
  }
};

}  // namespace

const MatMulPair kMatMulNeonF32 = {MatMulTiles<FloatKernelNeon<F32Source>>,
                                   MatMulTiles<FloatKernelNeon<F32Source>>};
const MatMulPair kMatMulNeonF16 = {MatMulTiles<FloatKernelNeon<F16Source>>,
                                   MatMulTiles<FloatKernelNeon<F16Source>>};
const MatMulPair kMatMulNeonBf16 = {
    MatMulTiles<FloatKernelNeon<Bf16FastSource>>,
    MatMulTiles<FloatKernelNeon<Bf16ExactSource>>};

}  // namespace millrace::kernels
