#include "base/quantity.h"

#include "gtest/gtest.h"

namespace millrace {
namespace {

TEST(Quantity, SizesAreExact) {
  EXPECT_EQ(ParseSize("29GB").value(), 29'000'000'000);
  EXPECT_EQ(ParseSize("512MiB").value(), int64_t{512} << 20);
  EXPECT_EQ(ParseSize("1.5GiB").value(), int64_t{3} << 29);
  EXPECT_EQ(ParseSize("0.1kB").value(), 100);
  EXPECT_EQ(ParseSize("1.0009 kB").value(), 1000);
  EXPECT_EQ(ParseSize("9223372036854775807").value(), INT64_MAX);
}

TEST(Quantity, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", "GB", "-1", "1XB", "9223372036854775808", "1e99GB", "1..2", ".",
        "0x10", "10 000", "9223372036854.8MB"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
}

TEST(Quantity, DurationsAndRates) {
  EXPECT_EQ(ParseDuration("200ms").value(), absl::Milliseconds(200));
  EXPECT_EQ(ParseDuration("3").value(), absl::Seconds(3));
  EXPECT_FALSE(ParseDuration("-3s").ok());
  EXPECT_EQ(ParseRate("100Gbit/s").value(), 12.5e9);
  EXPECT_EQ(ParseRate("50GB/s").value(), 50e9);
  EXPECT_EQ(ParseRate("2e9").value(), 2e9);
  EXPECT_FALSE(ParseRate("50GB").ok());
}

TEST(Quantity, FormatsForPeople) {
  EXPECT_EQ(HumanSize(94'371'840), "94.4 MB");
  EXPECT_EQ(HumanSize(999), "999 B");
  EXPECT_EQ(HumanSize(999'999), "1.00 MB");
  EXPECT_EQ(HumanDuration(absl::Milliseconds(812)), "812 ms");
}

}  // namespace
}  // namespace millrace
