#include <cmath>
#include <limits>

#include "kernels/ops_scalar.h"
#include "kernels/vector/elementary.h"

namespace millrace::kernels::scalar {
namespace {

// No probability: marks an expert as chosen.
constexpr float kTaken = -1.0f;

// Whether `a`, of a higher index, comes before `b`: NaN is last.
bool ComesBefore(float a, float b) {
  return a > b || (std::isnan(b) && !std::isnan(a));
}

// The best expert that is left; there is one.
int64_t BestLeft(const float* p, int64_t n) {
  int64_t best = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (p[i] != kTaken && (best < 0 || ComesBefore(p[i], p[best]))) {
      best = i;
    }
  }
  return best;
}

// p = softmax(logits).
void Softmax(const float* logits, int64_t n, float* p) {
  float max = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    max = logits[i] > max ? logits[i] : max;
  }
  float lanes[16] = {};
  for (int64_t i = 0; i < n; ++i) {
    p[i] = Exp(logits[i] - max);
    lanes[i % 16] += p[i];
  }
  const float sum = TreeSum(lanes);
  for (int64_t i = 0; i < n; ++i) {
    p[i] = p[i] / sum;
  }
}

}  // namespace

void SoftmaxRouter(const SoftmaxRouterArgs& args, int64_t row_begin,
                   int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    float* p = args.scratch;
    Softmax(args.logits + row * args.logits_stride, args.num_experts, p);
    int32_t* experts = args.experts + row * args.num_chosen;
    float* weights = args.weights + row * args.num_chosen;
    float sum = 0.0f;
    for (int64_t j = 0; j < args.num_chosen; ++j) {
      const int64_t best = BestLeft(p, args.num_experts);
      experts[j] = static_cast<int32_t>(best);
      weights[j] = p[best];
      sum += p[best];
      p[best] = kTaken;
    }
    if (args.renormalise) {
      for (int64_t j = 0; j < args.num_chosen; ++j) {
        weights[j] = weights[j] / sum;
      }
    }
  }
}

}  // namespace millrace::kernels::scalar
