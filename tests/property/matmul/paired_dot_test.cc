// The check of the paired dot instruction passes where the instruction does
// what its definition says, flushing included: its operands keep clear of
// subnormals, which would make it refuse good processors.

#include "gtest/gtest.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {
namespace {

TEST(PairedDotTest, CheckAcceptsTheDefinition) {
  EXPECT_TRUE(PairedDotIsTwoFusedSteps());
}

}  // namespace
}  // namespace millrace::kernels
