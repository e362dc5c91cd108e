#include "stage-worker/sampling/candidates.h"

#include <algorithm>
#include <limits>

namespace millrace::worker {
namespace {

// Up to here a heap beats sorting; beyond, its insertions become frequent.
constexpr int64_t kHeapMax = 1024;

// Buckets of z below the maximum, kBucketsPerUnit to a factor of e in weight;
// the last takes all the rest.
constexpr int kBuckets = 128;
constexpr float kBucketsPerUnit = 8;

// A z from which on the tokens weigh about `target` or a little more. A wrong
// one costs time alone: SelectTopP goes on behind it.
float ReachOfTopP(absl::Span<const float> z, absl::Span<const float> weights,
                  float max, double target) {
  double buckets[kBuckets] = {};
  for (size_t i = 0; i < z.size(); ++i) {
    const float at = std::min((max - z[i]) * kBucketsPerUnit,
                              static_cast<float>(kBuckets - 1));
    buckets[static_cast<int>(at)] += weights[i];
  }
  double sum = 0;
  for (int b = 0; b < kBuckets - 1; ++b) {
    sum += buckets[b];
    if (sum >= target) {
      return max - static_cast<float>(b + 1) / kBucketsPerUnit;
    }
  }
  return -std::numeric_limits<float>::infinity();
}

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
  constexpr float kAll = -std::numeric_limits<float>::infinity();
  out.clear();
  double sum = 0;
  float above = std::numeric_limits<float>::infinity();
  for (const float from : {ReachOfTopP(z, weights, max, target), kAll}) {
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
