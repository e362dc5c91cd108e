#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace millrace {

// Runs the chunks of one operation at a time on a fixed set of threads, the
// caller among them. Owned by one stage; only its step thread calls Run.
// Workers spin briefly between operations, then sleep: an idle pool uses no
// processor time. Nothing is allocated after construction.
class ThreadPool {
 public:
  // `num_threads` >= 1 counts the caller.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int num_threads() const {
    return static_cast<int>(workers_.size()) + 1;
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

  void RunErased(int64_t num_chunks, ChunkFunction function, void* context);
  void Work(int thread) noexcept;
  void TakeChunks(int thread);
  // Waits until epoch_ differs from `seen`; false when stopping.
  bool AwaitEpoch(uint32_t seen);

  // One operation: written by the caller before epoch_ is released, read by
  // workers after they acquired it.
  ChunkFunction function_ = nullptr;
  void* context_ = nullptr;
  int64_t num_chunks_ = 0;

  // next_ is claimed with fetch_add; epoch_ publishes an operation (release by
  // the caller, acquire by workers); busy_ counts workers inside the current
  // operation (release on leaving, acquire by the joining caller).
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int> busy_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};

  Mutex mutex_;
  CondVar wake_;
  std::vector<std::thread> workers_;
};

}  // namespace millrace
