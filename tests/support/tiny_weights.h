#pragma once

#include <cstdint>
#include <string>

#include "kernels/quant/weight_format.h"

namespace millrace::testing {

// Deterministic random weights. Rows depend on name, seed and row alone, so a
// matrix is the same in every file format that can hold its values, however its
// rows are ordered there.

struct TinyRows {
  std::string name;
  uint64_t seed = 1;
  int64_t cols = 0;
  double mean = 0;
  double deviation = 0;
};

// One stored row of `rows.cols` elements. Blocks of quantised formats are
// random valid blocks whose values have about this deviation and mean 0.
std::string TinyRow(const TinyRows& rows, kernels::WeightFormat format,
                    int64_t row);

}  // namespace millrace::testing
