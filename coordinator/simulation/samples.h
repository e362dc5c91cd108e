#pragma once

#include <cstdint>
#include <vector>

namespace millrace::coordinator {

// Many numbers of which only a summary is wanted. The first kExact are kept, so
// that their percentiles are exact; beyond, all are counted by size in bounded
// memory, and percentiles are right within 0.1 %. Mean and deviation are exact
// either way. Pure; owned by one thread.
class Samples {
 public:
  // 32 MB of numbers: every request of a run of a million.
  static constexpr int64_t kExact = int64_t{1} << 22;

  Samples() = default;
  // Keeps `exact` numbers at most.
  explicit Samples(int64_t exact) : exact_(exact) {}

  // `value` is finite and >= 0.
  void Add(double value);

  [[nodiscard]] int64_t count() const { return count_; }
  // Of none: 0.
  [[nodiscard]] double Mean() const { return mean_; }
  // Of the numbers taken as the whole population.
  [[nodiscard]] double Deviation() const;
  // Linear between the two neighbors in order, as numpy does; `percent` in
  // [0, 100]. Of none: 0. Sorts what is kept.
  [[nodiscard]] double Percentile(double percent);

 private:
  struct Bucket {
    int64_t count = 0;
    double sum = 0;
  };
  void AddToBucket(double value);
  void Fold();
  [[nodiscard]] double AtRank(int64_t rank) const;  // from 0

  int64_t exact_ = kExact;
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // sum of squared distances from the mean
  bool sorted_ = false;
  std::vector<double> kept_;
  std::vector<Bucket> buckets_;  // empty while all are kept
};

}  // namespace millrace::coordinator
