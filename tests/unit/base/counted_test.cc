// One of a thing is not spoken of as several, whatever the words around.

#include "base/counted.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(CountedTest, OneIsSingular) {
  EXPECT_EQ(Counted(1, "layer"), "1 layer");
  EXPECT_EQ(NounFor(1, "prompt token"), "prompt token");
}

TEST(CountedTest, EverythingElseIsPlural) {
  EXPECT_EQ(Counted(0, "node"), "0 nodes");
  EXPECT_EQ(Counted(2, "node"), "2 nodes");
  EXPECT_EQ(Counted(-1, "node"), "-1 nodes");
  EXPECT_EQ(NounFor(12, "sequence"), "sequences");
}

}  // namespace
}  // namespace millrace
