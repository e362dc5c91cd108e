#include "base/crc32c.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace millrace {
namespace {

// The check value of the CRC catalogues.
TEST(Crc32c, CheckValue) {
  EXPECT_EQ(Crc32cPortable(0, "123456789", 9), 0xE3069283u);
  EXPECT_EQ(Crc32c(0, "123456789", 9), 0xE3069283u);
}

// Instruction and table agree on every length and start, provoked by sliding
// over unaligned data.
TEST(Crc32c, ImplementationsAgree) {
  if (!Crc32cHasInstruction()) {
    GTEST_SKIP() << "no crc32 instruction";
  }
  std::vector<unsigned char> data(300);
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<unsigned char>(i * 131 + 7);
  }
  for (size_t start = 0; start < 9; ++start) {
    for (size_t size = 0; size + start <= data.size(); ++size) {
      ASSERT_EQ(Crc32cPortable(17, data.data() + start, size),
                Crc32cByInstruction(17, data.data() + start, size));
    }
  }
}

// Combining two checksums equals the checksum of the whole.
TEST(Crc32c, CombineEqualsWhole) {
  const std::string text(1000, 'x');
  for (size_t cut : {0u, 1u, 3u, 64u, 999u, 1000u}) {
    const uint32_t a = Crc32c(0, text.data(), cut);
    const uint32_t b = Crc32c(0, text.data() + cut, text.size() - cut);
    EXPECT_EQ(Crc32cCombine(a, b, text.size() - cut),
              Crc32c(0, text.data(), text.size()));
  }
}

}  // namespace
}  // namespace millrace
