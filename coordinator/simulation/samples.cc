#include "coordinator/simulation/samples.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace millrace::coordinator {
namespace {

// A bucket for every sign-free exponent from 2^-40 (a picosecond) to 2^39
// (17,000 years) and each of 2^10 steps between two powers of two: neighbors in
// order are neighbors in bits.
constexpr int kStepBits = 10;
constexpr int64_t kLowExponent = 1023 - 40;
constexpr int64_t kExponents = 80;
constexpr int64_t kBuckets = kExponents << kStepBits;

int64_t BucketOf(double value) {
  const auto bits =
      static_cast<int64_t>(std::bit_cast<uint64_t>(value) >> (52 - kStepBits));
  return std::clamp<int64_t>(bits - (kLowExponent << kStepBits), 0,
                             kBuckets - 1);
}

}  // namespace

void Samples::Add(double value) {
  ++count_;
  // Welford's update: no sum of squares that loses its last digits.
  const double from_old = value - mean_;
  mean_ += from_old / static_cast<double>(count_);
  squares_ += from_old * (value - mean_);
  if (!buckets_.empty()) {
    AddToBucket(value);
    return;
  }
  if (count_ > exact_) {
    Fold();
    AddToBucket(value);
    return;
  }
  sorted_ = false;
  kept_.push_back(value);
}

double Samples::Deviation() const {
  return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_));
}

double Samples::Percentile(double percent) {
  if (count_ == 0) {
    return 0;
  }
  if (!sorted_) {
    std::sort(kept_.begin(), kept_.end());
    sorted_ = true;
  }
  const double place = percent / 100 * static_cast<double>(count_ - 1);
  const auto below = static_cast<int64_t>(std::floor(place));
  const double low = AtRank(below);
  const double high = AtRank(std::min(below + 1, count_ - 1));
  return low + (high - low) * (place - static_cast<double>(below));
}

void Samples::AddToBucket(double value) {
  Bucket& bucket = buckets_[static_cast<size_t>(BucketOf(value))];
  ++bucket.count;
  bucket.sum += value;
}

void Samples::Fold() {
  buckets_.resize(static_cast<size_t>(kBuckets));
  for (const double value : kept_) {
    AddToBucket(value);
  }
  kept_ = {};
}

double Samples::AtRank(int64_t rank) const {
  if (buckets_.empty()) {
    return kept_[static_cast<size_t>(rank)];
  }
  for (const Bucket& bucket : buckets_) {
    if (rank < bucket.count) {
      return bucket.sum / static_cast<double>(bucket.count);
    }
    rank -= bucket.count;
  }
  return 0;
}

}  // namespace millrace::coordinator
