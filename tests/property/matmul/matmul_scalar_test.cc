// The definition's two bodies, with the fused instruction and with calls for
// processors without it, give the same bits; provoked over every format, mode
// and a panel of each kind.

#include "kernels/matmul/matmul_scalar.h"

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "tests/unit/kernels/matmul_case.h"

namespace millrace::kernels {
namespace {

TEST(ScalarTest, CallsAndInstructionsGiveTheSameBits) {
  if (!HostHasFusedStep()) {
    GTEST_SKIP() << "this processor has no fused instruction";
  }
  KernelTable plain = BuildKernelTable(Isa::kScalar);
  KernelTable fused = plain;
  AddScalarMatMul(plain, false);
  AddScalarMatMul(fused, true);
  std::mt19937 random(4006);
  for (int format = 0; format < kNumWeightFormats; ++format) {
    for (const ComputeMode mode : {ComputeMode::kFast, ComputeMode::kExact}) {
      for (const int64_t tokens : {1, 5, 16}) {
        const MatMulCase product(
            {static_cast<WeightFormat>(format), 20, 256, tokens, false},
            Spread::kAny, Spread::kFinite, random);
        const std::vector<float> want = RunMatMul(plain, mode, product);
        const std::vector<float> got = RunMatMul(fused, mode, product);
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_TRUE(SameBits(got[i], want[i])) << Describe(product.shape);
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
