// Delays double up to the cap, each between half and the whole, and begin anew
// after a success. Seeds are fixed.
#include "stage-worker/server/backoff.h"

#include "gtest/gtest.h"

namespace millrace::worker {
namespace {

TEST(Backoff, DoublesUpToTheCapWithJitter) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Backoff backoff(absl::Milliseconds(100), absl::Seconds(1), seed);
    for (const int whole_ms : {100, 200, 400, 800, 1000, 1000, 1000}) {
      const absl::Duration delay = backoff.Next();
      EXPECT_GE(delay, absl::Milliseconds(whole_ms) / 2);
      EXPECT_LE(delay, absl::Milliseconds(whole_ms));
    }
    backoff.Reset();
    EXPECT_LE(backoff.Next(), absl::Milliseconds(100));
  }
}

TEST(Backoff, DiffersBetweenWorkers) {
  Backoff a(absl::Seconds(1), absl::Seconds(1), 1);
  Backoff b(absl::Seconds(1), absl::Seconds(1), 2);
  EXPECT_NE(a.Next(), b.Next());
}

}  // namespace
}  // namespace millrace::worker
