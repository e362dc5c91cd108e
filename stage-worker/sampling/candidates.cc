#include "stage-worker/sampling/candidates.h"

#include <algorithm>
#include <limits>

namespace millrace::worker {
namespace {

// Up to here a heap beats sorting; beyond, its insertions become frequent.
constexpr int64_t kHeapMax = 1024;

// How far below the maximum each step of SelectTopP reaches. Weights fall by
// e^-4 a step, so peaked rows sort only a few tokens.
constexpr float kReach[] = {2.0f, 6.0f, 10.0f, 16.0f,
                            std::numeric_limits<float>::infinity()};

void SelectWithHeap(absl::Span<const float> z, int64_t k,
                    std::vector<Candidate>& out) {
  // With ComesBefore as "less", the front of the heap is the last in order.
  for (int64_t i = 0; i < k; ++i) {
    out.push_back({z[i], static_cast<int32_t>(i)});
  }
  std::make_heap(out.begin(), out.end(), ComesBefore);
  float threshold = out.front().z;
  for (size_t i = k; i < z.size(); ++i) {
    // An equal z of a higher id stays behind.
    if (z[i] > threshold) {
      std::pop_heap(out.begin(), out.end(), ComesBefore);
      out.back() = {z[i], static_cast<int32_t>(i)};
      std::push_heap(out.begin(), out.end(), ComesBefore);
      threshold = out.front().z;
    }
  }
  std::sort_heap(out.begin(), out.end(), ComesBefore);
}

void SelectWithPartition(absl::Span<const float> z, int64_t k,
                         std::vector<Candidate>& out) {
  for (size_t i = 0; i < z.size(); ++i) {
    out.push_back({z[i], static_cast<int32_t>(i)});
  }
  std::nth_element(out.begin(), out.begin() + (k - 1), out.end(), ComesBefore);
  out.resize(k);
  std::sort(out.begin(), out.end(), ComesBefore);
}

}  // namespace

void SelectTopK(absl::Span<const float> z, int64_t k,
                std::vector<Candidate>& out) {
  out.clear();
  if (k <= kHeapMax) {
    SelectWithHeap(z, k, out);
  } else {
    SelectWithPartition(z, k, out);
  }
}

void SelectTopP(absl::Span<const float> z, absl::Span<const float> weights,
                float max, double target, std::vector<Candidate>& out) {
  out.clear();
  double sum = 0;
  float above = std::numeric_limits<float>::infinity();
  for (const float reach : kReach) {
    const float from = max - reach;
    const size_t begin = out.size();
    for (size_t i = 0; i < z.size(); ++i) {
      if (z[i] >= from && z[i] < above) {
        out.push_back({z[i], static_cast<int32_t>(i)});
      }
    }
    std::sort(out.begin() + static_cast<int64_t>(begin), out.end(),
              ComesBefore);
    for (size_t i = begin; i < out.size(); ++i) {
      sum += weights[out[i].id];
      if (sum >= target) {
        out.resize(i + 1);
        return;
      }
    }
    above = from;
  }
}

void CutTopP(absl::Span<const float> weights, double target,
             std::vector<Candidate>& candidates) {
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += weights[candidates[i].id];
    if (sum >= target) {
      candidates.resize(i + 1);
      return;
    }
  }
}

}  // namespace millrace::worker
