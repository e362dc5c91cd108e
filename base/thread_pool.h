#pragma once

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/read_ahead.h"

namespace millrace {

// Runs the chunks of one operation at a time on a fixed set of threads, the
// caller among them. Owned by one stage; only its step thread calls Run.
//
// Every thread begins with its own range of neighbouring chunks and then takes
// from the ends of others' ranges, so that an operation waits only for chunks
// that somebody works on, never for a thread that did not come. Workers spin
// briefly between operations, then sleep: an idle pool uses no processor time.
// Where another process holds a core, waiting for the thread on it would cost a
// slice of the scheduler at every operation: after repeated stalls one thread
// less takes part for a while. Nothing is allocated after construction.
//
// The gaps between members keep what one thread writes and others read on cache
// lines of its own.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
class ThreadPool {
 public:
  // `num_threads` >= 1 counts the caller. Where the system starts no more
  // threads the pool has fewer: num_threads() tells.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int num_threads() const {
    return static_cast<int>(workers_.size()) + 1;
  }

  // Threads that are not left out at the moment, the caller included.
  [[nodiscard]] int active_threads() const {
    return active_.load(std::memory_order_relaxed);
  }

  // The first chunk of `thread`'s own range in an operation of `num_chunks`, if
  // all active threads take part; thread may be active_threads().
  [[nodiscard]] int64_t FirstChunkOf(int thread, int64_t num_chunks) const {
    return std::min(thread, active_threads()) * num_chunks / active_threads();
  }

  // What `thread` will read first in a later operation: it asks for that
  // whenever it waits, once, until the list is replaced.
  void SetReadAhead(int thread, std::span<const ReadAhead::Piece> pieces) {
    threads_[static_cast<size_t>(thread)].read_ahead.Set(pieces);
  }

  // Calls `function(chunk, thread)` once for every chunk in [0, num_chunks),
  // thread in [0, num_threads()), and returns when all have returned. Which
  // thread takes a chunk is not determined; results must not depend on it.
  template <typename Function>
  void Run(int64_t num_chunks, Function&& function) {
    using Plain = std::remove_reference_t<Function>;
    RunErased(
        num_chunks,
        [](void* context, int64_t chunk, int thread) {
          (*static_cast<Plain*>(context))(chunk, thread);
        },
        const_cast<void*>(static_cast<const void*>(&function)));
  }

 private:
  using ChunkFunction = void (*)(void* context, int64_t chunk, int thread);

  struct alignas(64) Thread {
    // The chunks that it has left: [next, end) and the operation they belong
    // to, in one word, so that a claim by a thread that lags behind one
    // operation cannot succeed in another.
    std::atomic<uint64_t> range{0};
    // Caller only: processor time that the worker had used when the caller
    // began to suspect a stall; negative where it does not.
    int64_t used_before = -1;
    ThreadPool* pool = nullptr;
    ReadAhead read_ahead;
    clockid_t clock = 0;  // of the worker's processor time
    // Set by the worker while it looks for chunks and works on them.
    std::atomic<bool> working{false};
  };

  void RunErased(int64_t num_chunks, ChunkFunction function, void* context);
  void RunOperation(int64_t first, int64_t num_chunks, ChunkFunction function,
                    void* context);
  void Publish(int64_t first, int64_t num_chunks, ChunkFunction function,
               void* context);
  // Works until no chunk of the operation is left to claim; the number done.
  int64_t TakeChunks(int thread, uint32_t operation);
  // Waits until others have done so many chunks. All waiting threads go through
  // what they were told to read ahead.
  void Join(int64_t num_chunks);

  // Of a wait that grows long: notes what the workers on whom it waits have
  // used of a processor, and later whether one of them had none to run on.
  void BeginSuspicion();
  // Those that have ended are not what the wait lasts for.
  void ClearTheFinished();
  [[nodiscard]] bool SomeoneHadNoProcessor(int64_t waited) const;
  void NoteStall(int64_t now, int64_t waited);
  void ReturnParked();
  void SetActive(int threads);

  // False where the system starts no more threads.
  bool StartWorker(int thread);
  static void* Enter(void* thread) noexcept;
  void Work(int thread) noexcept;
  // Waits until there is another operation than `seen` and this thread is not
  // left out, and leaves that operation in `seen`; false when stopping.
  bool AwaitOperation(int thread, uint32_t& seen);

  // The current operation. Read by a worker before it claims a chunk: a
  // successful claim proves that the operation was not over, so that nobody
  // wrote these since.
  std::atomic<ChunkFunction> function_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int64_t> first_{0};
  std::unique_ptr<Thread[]> threads_;  // [num_threads]

  // operation_ publishes (release by the caller, acquire by workers);
  // finished_ counts chunks done (release by workers, acquire by the caller).
  alignas(64) std::atomic<uint32_t> operation_{0};
  alignas(64) std::atomic<int64_t> finished_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> active_{1};
  std::atomic<bool> stop_{false};

  // Caller only; times in nanoseconds of the monotonic clock.
  int64_t last_stall_ = 0;
  int64_t parked_until_ = 0;
  int64_t park_ = 0;  // how long the last thread left out was

  Mutex mutex_;
  CondVar wake_;
  std::vector<pthread_t> workers_;
};

}  // namespace millrace
