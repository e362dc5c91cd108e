#include "base/thread_pool.h"

#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
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

// More chunks than a thread's range can name are cut into several operations.
TEST(ThreadPool, MoreChunksThanOneOperationHolds) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> seen(200'000);
  pool.Run(static_cast<int64_t>(seen.size()), [&](int64_t chunk, int) {
    seen[static_cast<size_t>(chunk)].fetch_add(1, std::memory_order_relaxed);
  });
  for (const std::atomic<int>& count : seen) {
    ASSERT_EQ(count.load(), 1);
  }
}

// What is behind a thread that does not come or is slow is done by the others.
TEST(ThreadPool, OthersTakeWhatASlowThreadHasLeft) {
  ThreadPool pool(2);
  std::atomic<int> slow{0};
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> done{0};
    pool.Run(64, [&](int64_t, int thread) {
      if (thread == 1) {
        slow.fetch_add(1);
        while (done.load() < 60) {
          std::this_thread::yield();
        }
      }
      done.fetch_add(1);
    });
    ASSERT_EQ(done.load(), 64);
  }
}

// A worker that is asleep inside its chunks, as one whose core another process
// holds, is left out after a while and comes back later; results are the same.
TEST(ThreadPool, LeavesOutAThreadWithoutAProcessorForAWhile) {
  ThreadPool pool(2);
  const auto run = [&pool](absl::Duration sleep) {
    std::atomic<int> done{0};
    std::atomic<bool> came{pool.active_threads() == 1};
    pool.Run(2, [&](int64_t, int thread) {
      if (thread == 1) {
        came.store(true);
        absl::SleepFor(sleep);
      }
      while (!came.load()) {
        std::this_thread::yield();
      }
      done.fetch_add(1);
    });
    EXPECT_EQ(done.load(), 2);
  };
  const absl::Time limit = absl::Now() + absl::Seconds(60);
  while (pool.active_threads() == 2 && absl::Now() < limit) {
    run(absl::Milliseconds(100));
  }
  EXPECT_EQ(pool.active_threads(), 1);
  while (pool.active_threads() == 1 && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(10));
    pool.Run(2, [](int64_t, int) {});
  }
  EXPECT_EQ(pool.active_threads(), 2);
}

// A worker that had ended its short chunk long before a long one did has not
// lacked a processor.
TEST(ThreadPool, ChunksOfUnequalLengthLeaveNobodyOut) {
  const auto compute = [](absl::Duration time) {
    const absl::Time end = absl::Now() + time;
    while (absl::Now() < end) {
    }
  };
  bool all_stayed = false;
  // More than once: the machine may have something else to do.
  for (int attempt = 0; attempt < 20 && !all_stayed; ++attempt) {
    ThreadPool pool(3);
    for (int round = 0; round < 4 && pool.active_threads() == 3; ++round) {
      std::atomic<int> came{0};
      pool.Run(3, [&](int64_t, int thread) {
        came.fetch_add(1);
        while (came.load() < 3) {
          std::this_thread::yield();
        }
        compute(absl::Milliseconds(thread == 2 ? 40 : thread));
      });
    }
    all_stayed = pool.active_threads() == 3;
  }
  EXPECT_TRUE(all_stayed);
}

// Exit code of a process that may start some threads but not a thousand, since
// their stacks exceed its address space: 0 where a pool works with those.
[[noreturn]] void RunInLittleAddressSpace() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = static_cast<rlim_t>(pages) * 4096 + (rlim_t{512} << 20);
  const rlimit space = {limit, limit};
  if (setrlimit(RLIMIT_AS, &space) != 0) {
    std::exit(2);
  }
  ThreadPool pool(1000);
  std::atomic<int> done{0};
  pool.Run(100, [&](int64_t, int) { done.fetch_add(1); });
  std::exit(pool.num_threads() > 1 && pool.num_threads() < 1000 &&
                    pool.active_threads() == pool.num_threads() && done == 100
                ? 0
                : 1);
}

// A pool has as many threads as the system starts, and says so.
TEST(ThreadPool, HasTheThreadsThatTheSystemStarts) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes more address space than there is memory";
#endif
  EXPECT_EXIT(RunInLittleAddressSpace(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace millrace
