#include "tests/simulation/pipeline_simulation.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"

namespace millrace::coordinator {
namespace {

// MILLRACE_SEED=N plays that seed alone.
constexpr uint64_t kFirstSeed = 1;
constexpr uint64_t kNumSeeds = 3000;

// Whatever the pipeline's shape, arrivals, cancels and losses: every request
// ends exactly once, its tokens are contiguous and equal to the oracle's,
// stages see each sequence in order within its reservation, the ledger and the
// slots return to zero, and something is always under way while anybody waits.
// The seeds are drawn so that all endings occur many times.
TEST(PipelineSimulation, InvariantsHold) {
  uint64_t first = kFirstSeed;
  uint64_t count = kNumSeeds;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing sets the environment.
  if (const char* seed = std::getenv("MILLRACE_SEED"); seed != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(seed, &first)) << "MILLRACE_SEED=" << seed;
    count = 1;
  }
  PipelineSimulation::Totals sum;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    PipelineSimulation simulation(seed);
    const absl::Status status = simulation.Run();
    ASSERT_TRUE(status.ok()) << "MILLRACE_SEED=" << seed << ": " << status;
    const PipelineSimulation::Totals& one = simulation.totals();
    sum.events += one.events;
    sum.requests += one.requests;
    sum.finished += one.finished;
    sum.cancelled += one.cancelled;
    sum.lost += one.lost;
    sum.expired += one.expired;
    sum.refused += one.refused;
    sum.out_of_range += one.out_of_range;
    sum.losses += one.losses;
  }
  std::cout << "seeds " << first << " to " << first + count - 1 << ": "
            << sum.events << " events, " << sum.requests << " requests, "
            << sum.finished << " finished, " << sum.cancelled << " cancelled, "
            << sum.lost << " lost, " << sum.expired << " expired, "
            << sum.refused << " refused, " << sum.out_of_range
            << " out of range, " << sum.losses << " losses\n";
  if (count > 1) {
    EXPECT_GT(sum.finished, sum.requests / 4);
    for (const int64_t ending : {sum.cancelled, sum.lost, sum.expired,
                                 sum.refused, sum.out_of_range}) {
      EXPECT_GT(ending, 100);
    }
  }
}

}  // namespace
}  // namespace millrace::coordinator
