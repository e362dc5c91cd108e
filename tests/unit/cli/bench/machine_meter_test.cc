// The meter's sizes and rates: it reads more than caches hold, and finds
// something of everything that the host has loops for.
#include "cli/bench/machine_meter.h"

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"

namespace millrace::cli {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(MachineMeterTest, ReadsFourTimesTheCachesOfAQuarterOfMemory) {
  EXPECT_EQ(MeasuredBytes(100 * kMiB, int64_t{1} << 40), 400 * kMiB);
  EXPECT_EQ(MeasuredBytes(kMiB, int64_t{1} << 40), 128 * kMiB);
  EXPECT_EQ(MeasuredBytes(1024 * kMiB, int64_t{1} << 40), 4096 * kMiB);
  EXPECT_EQ(MeasuredBytes(1024 * kMiB, 8192 * kMiB), 2048 * kMiB);
  EXPECT_EQ(MeasuredBytes(100 * kMiB, 40 * kMiB), 10 * kMiB);
  EXPECT_EQ(MeasuredBytes(100 * kMiB, 0), kMiB);
}

TEST(MachineMeterTest, SaysWhereCachesAreInTheBandwidth) {
  EXPECT_EQ(BandwidthWarning(400 * kMiB, 100 * kMiB), "");
  EXPECT_EQ(BandwidthWarning(10'000'000, 100'000'000),
            "memory bandwidth is of 10.0 MB, less than four times the last "
            "caches (100 MB): their speed is in it");
}

TEST(MachineMeterTest, TwoFusedStepsWhereNoPairedDotIsFaster) {
  MachineRates rates;
  rates.peaks[static_cast<size_t>(kernels::Peak::kFma)] = 5;
  EXPECT_EQ(rates.PeakFor(kernels::Peak::kPairedDot), 5);
  EXPECT_EQ(rates.PeakFor(kernels::Peak::kByteDot), std::nullopt);
  rates.peaks[static_cast<size_t>(kernels::Peak::kPairedDot)] = 9;
  EXPECT_EQ(rates.PeakFor(kernels::Peak::kPairedDot), 9);
  rates.peaks[static_cast<size_t>(kernels::Peak::kPairedDot)] = 3;
  EXPECT_EQ(rates.PeakFor(kernels::Peak::kPairedDot), 5);
}

TEST(MachineMeterTest, MeasuresWhatTheHostHas) {
  const kernels::Isa isa = kernels::BestIsa();
  const auto meter = MachineMeter::Create(isa, 2);
  ASSERT_TRUE(meter.ok()) << meter.status();
  const MachineRates rates = (*meter)->Measure();
  EXPECT_GT(rates.memory_bandwidth, 0);
  const kernels::CeilingLoops loops = kernels::BuildCeilingLoops(isa);
  for (size_t i = 0; i < rates.peaks.size(); ++i) {
    EXPECT_EQ(rates.peaks[i].has_value(), loops.peaks[i].run != nullptr);
    EXPECT_GT(rates.peaks[i].value_or(1), 0);
  }
}

}  // namespace
}  // namespace millrace::cli
