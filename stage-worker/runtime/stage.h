#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "model/checkpoint/checkpoint.h"
#include "stage-worker/experts/expert_store.h"
#include "stage-worker/layers/rope_tables.h"
#include "stage-worker/layers/step_context.h"
#include "stage-worker/runtime/head.h"
#include "stage-worker/runtime/mapped_memory.h"
#include "stage-worker/runtime/sequences.h"
#include "stage-worker/runtime/stage_runner.h"
#include "stage-worker/runtime/weights.h"

namespace millrace::worker {

// The arithmetic of one stage: one frame in, one frame out. No links, no
// threads but the pool's. One thread at a time. Nothing is allocated by Process
// after warm-up: all is sized from the plan at Create.
class Stage {
 public:
  static absl::StatusOr<std::unique_ptr<Stage>> Create(
      const model::Checkpoint& checkpoint, const StageRunner::Options& options);

  // Applies the operations of `in`, computes its rows and fills `out`: hidden
  // state for the next stage, or results. `out` points into this stage and into
  // `in` until the next call. kDataLoss: `in` contradicts the stage's state;
  // Reset before going on. kCancelled: so was the pass; the same holds.
  [[nodiscard]] absl::Status Process(const transport::Frame& in,
                                     transport::Frame& out);
  // Any thread. The pass under way ends within a chunk of an operation, those
  // after it at once, until Reset.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // Drops all sequences. Not while Process runs.
  void Reset();

  [[nodiscard]] const StageMemory& memory() const { return memory_; }
  [[nodiscard]] const Sequences& sequences() const { return sequences_; }

 private:
  Stage(const StageRunner::Options& options, std::unique_ptr<ThreadPool> pool,
        std::unique_ptr<Weights> weights, MappedMemory kv,
        MappedMemory scratch);

  void ListFirstWeights();
  void PlaceKv();
  void PlaceScratch();
  void PlaceAttentionScratch();
  [[nodiscard]] absl::Status TakeHidden(const transport::Frame& in);
  // False where the pass was cancelled.
  [[nodiscard]] bool RunLayers(const transport::Frame& in);
  void PassOn(const transport::Frame& in, transport::Frame& out);

  const StageRunner::Options options_;
  const StageConfig config_;
  std::unique_ptr<Weights> weights_;
  MappedMemory kv_;
  MappedMemory scratch_;
  StageMemory memory_;
  std::unique_ptr<ThreadPool> pool_;
  RopeTables ropes_;
  Sequences sequences_;
  ResidentExpertStore experts_;
  // The first products' weights of all operations in their order, and of the
  // head where this stage holds it.
  std::vector<std::vector<const LoadedMatrix*>> first_weights_;
  // [layer of this stage]; of its attention operation, where it has one.
  std::vector<KvLayer> kv_layers_;
  std::atomic<bool> cancelled_{false};
  StepContext step_;
  std::vector<std::byte> attention_scratch_;
  std::unique_ptr<Head> head_;  // last stage only
};

}  // namespace millrace::worker
