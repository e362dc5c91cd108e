#include "cli/compute_options.h"

#include "gtest/gtest.h"

namespace millrace::cli {
namespace {

// Models say "all tokens" with a top-k of -1, too; stages know only 0.
TEST(SamplingChoice, TopKOfAModelIsNotNegative) {
  model::GenerationDefaults defaults;
  defaults.top_k = -1;
  EXPECT_EQ(Validate(SamplingFlags(), defaults).value().top_k, 0);
  defaults.top_k = 20;
  EXPECT_EQ(Validate(SamplingFlags(), defaults).value().top_k, 20);
}

}  // namespace
}  // namespace millrace::cli
