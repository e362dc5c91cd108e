#include "tests/property/ops/versions.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/property/ops/ops_array.h"
#include "tests/property/tested_versions.h"

namespace millrace::kernels {

std::vector<Version> OtherVersions() {
  std::vector<Version> versions;
  versions.push_back({"array", BuildKernelTable(Isa::kScalar)});
  AddArrayOps(versions.back().table);
  for (TestedVersion& version : TestedVersions()) {
    if (version.not_run.empty()) {
      versions.push_back({std::move(version.name), version.table});
    }
  }
  return versions;
}

int64_t ValueMaker::Below(int64_t n) {
  return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
}

float ValueMaker::Normal(float scale) {
  return std::normal_distribution<float>(0.0f, scale)(random_);
}

std::vector<float> ValueMaker::Vector(int64_t n, float scale,
                                      int64_t special_one_in) {
  using Limits = std::numeric_limits<float>;
  static const std::vector<float> kSpecial = {0.0f,
                                              -0.0f,
                                              Limits::denorm_min(),
                                              -1e-40f,
                                              Limits::min(),
                                              -Limits::max(),
                                              Limits::max(),
                                              Limits::infinity(),
                                              65504.0f,
                                              65519.99f,
                                              65520.0f,
                                              -65520.0f,
                                              0x1.004p0f,
                                              0x1.00cp0f,
                                              0x1.01p0f,
                                              0x1.03p0f,
                                              6.0e-8f,
                                              2.9e-8f,
                                              3.0e-5f,
                                              0x1.fep127f,
                                              -87.0f,
                                              88.0f,
                                              -87.0001f,
                                              88.0001f,
                                              1.0f,
                                              -1.0f,
                                              1e10f,
                                              -1e-20f,
                                              -Limits::infinity(),
                                              Limits::quiet_NaN()};
  std::vector<float> values(n);
  for (float& value : values) {
    value = special_one_in > 0 && Chance(special_one_in) ? Pick(kSpecial)
                                                         : Normal(scale);
  }
  return values;
}

int64_t FirstDifference(const std::vector<float>& a,
                        const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same =
        std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i]) ||
        (std::isnan(a[i]) && std::isnan(b[i]));
    if (!same) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

}  // namespace millrace::kernels
