#include "gtest/gtest.h"
#include "tests/support/counted_allocations.h"
#include "tests/unit/coordinator/core/core_rig.h"

namespace millrace::coordinator {
namespace {

// After warm-up a pass of decoding allocates nothing in the core: a vector
// that is made anew per frame or per token would be counted.
TEST(PipelineCore, DecodingAllocatesNothing) {
  CoreRig rig(CoreRig::Config(3));
  for (int32_t i = 0; i < 16; ++i) {
    rig.Submit(CoreRig::Request(5, 200, i));
  }
  transport::Frame frame;
  std::vector<Notice> notices;
  const auto pass = [&] {
    if (!rig.core.PollFrame(rig.now, frame)) {
      return;
    }
    for (FakeStage& stage : rig.stages) {
      ASSERT_TRUE(stage.Process(frame).ok());
    }
    rig.core.FrameReturned(rig.now, frame);
    notices.clear();
    rig.core.TakeNotices(notices);
  };
  for (int i = 0; i < 40; ++i) {
    pass();
  }
  const int64_t before = ::millrace::testing::NumAllocations();
  for (int i = 0; i < 100; ++i) {
    pass();
  }
  EXPECT_EQ(::millrace::testing::NumAllocations() - before, 0);
  EXPECT_GT(rig.core.counters().generated_tokens, 100);
}

}  // namespace
}  // namespace millrace::coordinator
