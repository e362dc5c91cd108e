#include "kernels/ceilings/ceilings.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"

namespace millrace::kernels {
namespace {

constexpr int64_t kBytes = 5 * 1024;

struct alignas(64) Block {
  std::byte bytes[kBytes];
};

std::vector<Isa> HostIsas() {
  std::vector<Isa> isas;
  for (int i = 0; i < kNumIsas; ++i) {
    if (HostSupports(static_cast<Isa>(i))) {
      isas.push_back(static_cast<Isa>(i));
    }
  }
  return isas;
}

// A loop that left bytes out would claim a rate that no memory has: one bit
// anywhere changes the result, which is the same for every instruction set.
TEST(CeilingsTest, ReadingLooksAtEveryByte) {
  std::mt19937 random(7);
  Block block;
  for (std::byte& byte : block.bytes) {
    byte = static_cast<std::byte>(random());
  }
  const uint64_t expected =
      BuildCeilingLoops(Isa::kScalar).read(block.bytes, kBytes);
  for (const Isa isa : HostIsas()) {
    const CeilingLoops loops = BuildCeilingLoops(isa);
    for (const auto read : {loops.read, loops.read_places}) {
      if (read == nullptr) {
        continue;
      }
      EXPECT_EQ(read(block.bytes, kBytes), expected) << IsaName(isa);
      for (int64_t at = 0; at < kBytes; ++at) {
        block.bytes[at] ^= std::byte{16};
        EXPECT_NE(read(block.bytes, kBytes), expected)
            << IsaName(isa) << " byte " << at;
        block.bytes[at] ^= std::byte{16};
      }
      EXPECT_EQ(read(block.bytes, 0), 0u) << IsaName(isa);
    }
  }
}

// Every instruction set but the scalar definition has a peak for products in
// f32 and in bytes, and its loops end.
TEST(CeilingsTest, PeaksRunAndCountWork) {
  for (const Isa isa : HostIsas()) {
    const CeilingLoops loops = BuildCeilingLoops(isa);
    for (int i = 0; i < kNumPeaks; ++i) {
      const PeakLoop& peak = loops.peaks[i];
      const bool needed =
          isa != Isa::kScalar && static_cast<Peak>(i) != Peak::kPairedDot;
      EXPECT_TRUE(peak.run != nullptr || !needed)
          << IsaName(isa) << PeakName(static_cast<Peak>(i));
      EXPECT_EQ(peak.run != nullptr, peak.operations_per_turn > 0);
      if (peak.run != nullptr) {
        peak.run(1);
        peak.run(1000);
      }
    }
  }
}

TEST(CeilingsTest, EveryProductHasAPeak) {
  EXPECT_EQ(PeakOf(ComputeMode::kFast, WeightFormat::kQ4_K), Peak::kByteDot);
  EXPECT_EQ(PeakOf(ComputeMode::kFast, WeightFormat::kBf16), Peak::kPairedDot);
  EXPECT_EQ(PeakOf(ComputeMode::kFast, WeightFormat::kF16), Peak::kFma);
  std::set<std::string> names;
  for (int i = 0; i < kNumPeaks; ++i) {
    EXPECT_TRUE(names.insert(PeakName(static_cast<Peak>(i))).second);
  }
  for (int i = 0; i < kNumWeightFormats; ++i) {
    EXPECT_EQ(PeakOf(ComputeMode::kExact, static_cast<WeightFormat>(i)),
              Peak::kFma);
  }
}

}  // namespace
}  // namespace millrace::kernels
