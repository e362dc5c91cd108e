#include "base/thread_pool.h"

#include <time.h>

#include <algorithm>
#include <thread>

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

// A wait is looked at from kSuspectNanoseconds on. It is a stall where, from
// then to its end, kStallNanoseconds or more, a worker that it lasted for was
// without a processor for more than half of the time; long chunks alone are
// none. Two stalls within kStallsNear, or within ten times what the second
// took, leave one thread out, whichever, since none has a processor of its own:
// at first for kParkLeast, for twice as long each time that stalls come back
// soon after its return.
constexpr int64_t kSuspectNanoseconds = 100'000;
constexpr int64_t kStallNanoseconds = 300'000;
constexpr int64_t kStallsNear = 50'000'000;
constexpr int64_t kParkLeast = 100'000'000;
constexpr int64_t kParkMost = 3'000'000'000;

int64_t Nanoseconds(clockid_t clock) {
  timespec now;
  return clock_gettime(clock, &now) == 0
             ? now.tv_sec * 1'000'000'000 + now.tv_nsec
             : 0;
}
int64_t NowNanoseconds() { return Nanoseconds(CLOCK_MONOTONIC); }

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `done()` or the time is up, meanwhile asking for memory that is
// read next; returns the last done().
template <typename Done>
bool SpinUntil(Done done, int64_t nanoseconds, ReadAhead& read_ahead) {
  const int64_t start = NowNanoseconds();
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (done()) {
        return true;
      }
      if (!read_ahead.AskSome()) {
        Pause();
      }
    }
  } while (NowNanoseconds() - start < nanoseconds);
  return done();
}

// A range as a word: operation (32 bits), next chunk (16), end (16).
constexpr int64_t kChunksMost = 0xffff;

constexpr uint64_t MakeWord(uint32_t operation, int64_t next, int64_t end) {
  return uint64_t{operation} << 32 | static_cast<uint64_t>(next) << 16 |
         static_cast<uint64_t>(end);
}
constexpr uint32_t OperationOf(uint64_t word) {
  return static_cast<uint32_t>(word >> 32);
}
constexpr int64_t NextOf(uint64_t word) {
  return static_cast<int64_t>(word >> 16 & 0xffff);
}
constexpr int64_t EndOf(uint64_t word) {
  return static_cast<int64_t>(word & 0xffff);
}

enum class Side { kFront, kBack };

// Claims a chunk of `operation` from one side; -1 where none is left.
int64_t Claim(std::atomic<uint64_t>& range, uint32_t operation, Side side) {
  uint64_t word = range.load(std::memory_order_relaxed);
  while (OperationOf(word) == operation && NextOf(word) < EndOf(word)) {
    const int64_t next = NextOf(word);
    const int64_t end = EndOf(word);
    const uint64_t rest = side == Side::kFront
                              ? MakeWord(operation, next + 1, end)
                              : MakeWord(operation, next, end - 1);
    if (range.compare_exchange_weak(word, rest, std::memory_order_relaxed)) {
      return side == Side::kFront ? next : end - 1;
    }
  }
  return -1;
}

}  // namespace

ThreadPool::ThreadPool(int num_threads)
    : threads_(std::make_unique<Thread[]>(static_cast<size_t>(num_threads))) {
  MILLRACE_CHECK(num_threads >= 1);
  active_.store(num_threads, std::memory_order_relaxed);
  workers_.reserve(static_cast<size_t>(num_threads - 1));
  int next = 1;
  while (next < num_threads && StartWorker(next)) {
    ++next;
  }
  active_.store(next, std::memory_order_relaxed);
}

// Not std::thread, which throws where it cannot start.
bool ThreadPool::StartWorker(int thread) {
  Thread& worker = threads_[static_cast<size_t>(thread)];
  worker.pool = this;
  pthread_t handle;
  if (pthread_create(&handle, nullptr, &Enter, &worker) != 0) {
    return false;
  }
  workers_.push_back(handle);
  pthread_getcpuclockid(handle, &worker.clock);
  return true;
}

void* ThreadPool::Enter(void* thread) noexcept {
  const auto* worker = static_cast<const Thread*>(thread);
  ThreadPool& pool = *worker->pool;
  pool.Work(static_cast<int>(worker - pool.threads_.get()));
  return nullptr;
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mutex_);
    stop_.store(true, std::memory_order_release);
    operation_.fetch_add(1, std::memory_order_release);
  }
  wake_.NotifyAll();
  for (const pthread_t worker : workers_) {
    pthread_join(worker, nullptr);
  }
}

void ThreadPool::RunErased(int64_t num_chunks, ChunkFunction function,
                           void* context) {
  for (int64_t first = 0; first < num_chunks; first += kChunksMost) {
    RunOperation(first, std::min(kChunksMost, num_chunks - first), function,
                 context);
  }
}

void ThreadPool::RunOperation(int64_t first, int64_t num_chunks,
                              ChunkFunction function, void* context) {
  if (parked_until_ != 0) {
    ReturnParked();
  }
  if (active_threads() == 1 || num_chunks == 1) {
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
      function(context, first + chunk, 0);
    }
    return;
  }
  Publish(first, num_chunks, function, context);
  const int64_t own = TakeChunks(0, operation_.load(std::memory_order_relaxed));
  if (own < num_chunks) {
    Join(num_chunks - own);
  }
}

void ThreadPool::Publish(int64_t first, int64_t num_chunks,
                         ChunkFunction function, void* context) {
  const uint32_t operation = operation_.load(std::memory_order_relaxed) + 1;
  function_.store(function, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  first_.store(first, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  for (int thread = 0; thread < num_threads(); ++thread) {
    const int64_t begin = FirstChunkOf(thread, num_chunks);
    const int64_t end = FirstChunkOf(thread + 1, num_chunks);
    threads_[static_cast<size_t>(thread)].range.store(
        MakeWord(operation, begin, end), std::memory_order_relaxed);
  }
  // seq_cst here and on sleepers_: a worker that announces its sleep and then
  // reads the old operation must be seen by the read of sleepers_ below.
  operation_.store(operation, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    { MutexLock lock(mutex_); }
    wake_.NotifyAll();
  }
}

int64_t ThreadPool::TakeChunks(int thread, uint32_t operation) {
  const ChunkFunction function = function_.load(std::memory_order_relaxed);
  void* const context = context_.load(std::memory_order_relaxed);
  const int64_t first = first_.load(std::memory_order_relaxed);
  const int threads = num_threads();
  int64_t done = 0;
  for (int turn = 0; turn < threads; ++turn) {
    const int owner = (thread + turn) % threads;
    const Side side = turn == 0 ? Side::kFront : Side::kBack;
    std::atomic<uint64_t>& range = threads_[static_cast<size_t>(owner)].range;
    for (int64_t chunk = Claim(range, operation, side); chunk >= 0;
         chunk = Claim(range, operation, side)) {
      function(context, first + chunk, thread);
      ++done;
    }
  }
  return done;
}

void ThreadPool::Join(int64_t num_chunks) {
  const auto all_done = [this, num_chunks] {
    return finished_.load(std::memory_order_acquire) == num_chunks;
  };
  ReadAhead& read_ahead = threads_[0].read_ahead;
  if (SpinUntil(all_done, kJoinSpinNanoseconds, read_ahead)) {
    return;
  }
  const int64_t start = NowNanoseconds();
  int64_t suspected = 0;
  while (!SpinUntil(all_done, kJoinSpinNanoseconds, read_ahead)) {
    std::this_thread::yield();
    if (suspected == 0 && NowNanoseconds() - start > kSuspectNanoseconds) {
      BeginSuspicion();
      suspected = NowNanoseconds();
    } else if (suspected != 0) {
      ClearTheFinished();
    }
  }
  const int64_t now = NowNanoseconds();
  if (suspected != 0 && now - suspected > kStallNanoseconds &&
      SomeoneHadNoProcessor(now - suspected)) {
    NoteStall(now, now - suspected);
  }
}

void ThreadPool::BeginSuspicion() {
  for (int thread = 1; thread < num_threads(); ++thread) {
    Thread& worker = threads_[static_cast<size_t>(thread)];
    worker.used_before = worker.working.load(std::memory_order_relaxed)
                             ? Nanoseconds(worker.clock)
                             : -1;
  }
}

void ThreadPool::ClearTheFinished() {
  for (int thread = 1; thread < num_threads(); ++thread) {
    Thread& worker = threads_[static_cast<size_t>(thread)];
    if (!worker.working.load(std::memory_order_relaxed)) {
      worker.used_before = -1;
    }
  }
}

bool ThreadPool::SomeoneHadNoProcessor(int64_t waited) const {
  for (int thread = 1; thread < num_threads(); ++thread) {
    const Thread& worker = threads_[static_cast<size_t>(thread)];
    if (worker.used_before >= 0 &&
        Nanoseconds(worker.clock) - worker.used_before < waited / 2) {
      return true;
    }
  }
  return false;
}

void ThreadPool::NoteStall(int64_t now, int64_t waited) {
  const bool again = last_stall_ != 0 &&
                     now - last_stall_ < std::max(kStallsNear, 10 * waited);
  last_stall_ = now;
  if (!again || active_threads() == 1) {
    return;
  }
  const bool soon = park_ != 0 && now - parked_until_ < park_;
  park_ = soon ? std::min(2 * park_, kParkMost) : kParkLeast;
  parked_until_ = now + park_;
  last_stall_ = 0;
  SetActive(active_threads() - 1);
}

void ThreadPool::ReturnParked() {
  if (active_threads() < num_threads() && NowNanoseconds() >= parked_until_) {
    SetActive(num_threads());
  }
}

void ThreadPool::SetActive(int threads) {
  {
    MutexLock lock(mutex_);
    active_.store(threads, std::memory_order_relaxed);
  }
  wake_.NotifyAll();
}

bool ThreadPool::AwaitOperation(int thread, uint32_t& seen) {
  const auto changed = [this, &seen] {
    return operation_.load(std::memory_order_seq_cst) != seen;
  };
  const auto parked = [this, thread] {
    return thread >= active_threads() && !stop_.load(std::memory_order_relaxed);
  };
  ReadAhead& read_ahead = threads_[static_cast<size_t>(thread)].read_ahead;
  if (parked() || !SpinUntil(changed, kSpinNanoseconds, read_ahead)) {
    MutexLock lock(mutex_);
    while (parked()) {
      wake_.Wait(mutex_);
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (!changed() && !parked()) {
      wake_.Wait(mutex_);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  // In this order: whoever sees the operation that the destructor counts as the
  // last also sees stop_. The other way round, a worker could take that one for
  // work and then wait for another, which never comes.
  seen = operation_.load(std::memory_order_acquire);
  return !stop_.load(std::memory_order_acquire);
}

void ThreadPool::Work(int thread) noexcept {
  SetFloatEnvironment();
  std::atomic<bool>& working = threads_[static_cast<size_t>(thread)].working;
  uint32_t seen = 0;
  while (AwaitOperation(thread, seen)) {
    working.store(true, std::memory_order_relaxed);
    const int64_t done = TakeChunks(thread, seen);
    if (done > 0) {
      finished_.fetch_add(done, std::memory_order_release);
    }
    working.store(false, std::memory_order_relaxed);
  }
}

}  // namespace millrace
