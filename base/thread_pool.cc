#include "base/thread_pool.h"

#include <time.h>

#include "base/check.h"
#include "base/float_environment.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace millrace {
namespace {

// 5 us is too short, a wake costs more than a small operation; spinning for
// ever burns a core while nothing runs. Measured on a two-core Zen 4 machine.
constexpr int64_t kSpinNanoseconds = 50'000;
constexpr int kPausesPerClockRead = 32;
// A thread that the host has descheduled holds the join up; past this the
// waiting side gives its own slice away.
constexpr int64_t kJoinSpinNanoseconds = 20'000;

int64_t NowNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `done()` or the time is up; returns the last done().
template <typename Done>
bool SpinUntil(Done done, int64_t nanoseconds) {
  const int64_t start = NowNanoseconds();
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (done()) {
        return true;
      }
      Pause();
    }
  } while (NowNanoseconds() - start < nanoseconds);
  return done();
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  MILLRACE_CHECK(num_threads >= 1);
  workers_.reserve(static_cast<size_t>(num_threads - 1));
  for (int thread = 1; thread < num_threads; ++thread) {
    workers_.emplace_back([this, thread] { Work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_release);
  {
    MutexLock lock(mutex_);
    epoch_.fetch_add(1, std::memory_order_release);
  }
  wake_.NotifyAll();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::RunErased(int64_t num_chunks, ChunkFunction function,
                           void* context) {
  if (num_chunks <= 0) {
    return;
  }
  if (workers_.empty() || num_chunks == 1) {
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
      function(context, chunk, 0);
    }
    return;
  }
  function_ = function;
  context_ = context;
  num_chunks_ = num_chunks;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  // seq_cst on epoch_ and sleepers_: a worker that announces its sleep and then
  // reads the old epoch must be seen by the caller's read of sleepers_ below.
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    { MutexLock lock(mutex_); }
    wake_.NotifyAll();
  }
  TakeChunks(0);
  const auto all_left = [this] {
    return busy_.load(std::memory_order_acquire) == 0;
  };
  while (!SpinUntil(all_left, kJoinSpinNanoseconds)) {
    std::this_thread::yield();
  }
}

void ThreadPool::TakeChunks(int thread) {
  for (int64_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
       chunk < num_chunks_;
       chunk = next_.fetch_add(1, std::memory_order_relaxed)) {
    function_(context_, chunk, thread);
  }
}

bool ThreadPool::AwaitEpoch(uint32_t seen) {
  const auto changed = [this, seen] {
    return epoch_.load(std::memory_order_seq_cst) != seen;
  };
  if (!SpinUntil(changed, kSpinNanoseconds)) {
    MutexLock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (!changed()) {
      wake_.Wait(mutex_);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  return !stop_.load(std::memory_order_acquire);
}

void ThreadPool::Work(int thread) noexcept {
  SetFloatEnvironment();
  uint32_t seen = 0;
  while (AwaitEpoch(seen)) {
    ++seen;
    TakeChunks(thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace millrace
