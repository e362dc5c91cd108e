// Credits: taken one by one, granted up to the window and no further. Failures
// are provoked by grants that a broken peer would send.
#include "transport/flow_control.h"

#include "gtest/gtest.h"

namespace millrace::transport {
namespace {

TEST(CreditWindow, StartsEmptyAndGivesWhatWasGranted) {
  CreditWindow window(3);
  EXPECT_FALSE(window.TryTake());
  ASSERT_TRUE(window.Grant(2).ok());
  EXPECT_TRUE(window.TryTake());
  EXPECT_TRUE(window.TryTake());
  EXPECT_FALSE(window.TryTake());
  ASSERT_TRUE(window.Grant(3).ok());
  EXPECT_EQ(window.available(), 3);
}

TEST(CreditWindow, RefusesMoreThanTheWindow) {
  CreditWindow window(3);
  ASSERT_TRUE(window.Grant(2).ok());
  EXPECT_TRUE(absl::IsDataLoss(window.Grant(2)));
  EXPECT_TRUE(absl::IsDataLoss(window.Grant(0)));
  EXPECT_TRUE(absl::IsDataLoss(window.Grant(UINT32_MAX)));
  EXPECT_EQ(window.available(), 2);
  EXPECT_TRUE(window.Grant(1).ok());
}

}  // namespace
}  // namespace millrace::transport
