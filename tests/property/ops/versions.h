#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"

namespace millrace::kernels {

struct Version {
  std::string name;
  KernelTable table;
};

// Every version but the scalar one that this processor runs.
std::vector<Version> OtherVersions();

// Draws numbers with the odd special one: zeros, subnormals, infinities, the
// largest of each type, ties of rounding, NaN.
class ValueMaker {
 public:
  explicit ValueMaker(uint64_t seed) : random_(seed) {}

  [[nodiscard]] int64_t Below(int64_t n);
  [[nodiscard]] bool Chance(int64_t one_in) { return Below(one_in) == 0; }
  template <typename T>
  [[nodiscard]] T Pick(const std::vector<T>& values) {
    return values[Below(static_cast<int64_t>(values.size()))];
  }
  [[nodiscard]] float Normal(float scale);
  // One in `special_one_in` is special; 0: none.
  [[nodiscard]] std::vector<float> Vector(int64_t n, float scale,
                                          int64_t special_one_in);

 private:
  std::mt19937_64 random_;
};

// The index of the first element that differs in its bits, NaN being equal to
// NaN; -1 when there is none.
int64_t FirstDifference(const std::vector<float>& a,
                        const std::vector<float>& b);

}  // namespace millrace::kernels
