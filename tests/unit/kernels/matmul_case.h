#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "tests/unit/kernels/random_rows.h"

namespace millrace::kernels {

// A 64-byte aligned buffer of exactly the size asked for, so that sanitizers
// see an access beyond it.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t size);
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

struct MatMulShape {
  WeightFormat format;
  int64_t rows;
  int64_t cols;
  int64_t tokens;
  bool bias;
};
std::string Describe(const MatMulShape& shape);

// Weights and activations of one product, random.
struct MatMulCase {
  MatMulShape shape;
  std::vector<std::byte> stored;  // [rows] stored rows
  AlignedBytes tiles;
  std::vector<float> x;  // [tokens, x_stride]
  int64_t x_stride;
  std::vector<int32_t> row_index;  // [tokens], or empty
  std::vector<float> bias;         // [rows], or empty

  MatMulCase(const MatMulShape& shape, Spread weights, Spread activations,
             std::mt19937& random);

  const float* Token(int64_t token) const;
  const std::byte* Row(int64_t row) const;
};

// A NaN equals a NaN of any payload and sign.
bool SameBits(float a, float b);

// What fills y before a product; it stays where nothing may be written.
inline constexpr float kUntouched = -12345.5f;

// y [tokens, rows + 3]: tiles in two ranges, panels packed in two ranges.
std::vector<float> RunMatMul(const KernelTable& table, ComputeMode mode,
                             const MatMulCase& product);

}  // namespace millrace::kernels
