#include "base/thread_pool.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"

namespace millrace {
namespace {

// Every chunk runs exactly once, over many operations of changing size, so that
// a worker that lags behind one operation would be caught in the next.
TEST(ThreadPool, EveryChunkOnce) {
  for (int num_threads : {1, 2, 4}) {
    ThreadPool pool(num_threads);
    for (int64_t round = 0; round < 2000; ++round) {
      const int64_t num_chunks = round % 37;
      std::vector<int> seen(static_cast<size_t>(num_chunks));
      pool.Run(num_chunks,
               [&](int64_t chunk, int) { ++seen[static_cast<size_t>(chunk)]; });
      for (const int count : seen) {
        ASSERT_EQ(count, 1);
      }
    }
  }
}

}  // namespace
}  // namespace millrace
