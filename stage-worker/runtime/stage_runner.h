#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/kernel_table.h"
#include "model/checkpoint/checkpoint.h"
#include "stage-worker/runtime/stage_config.h"
#include "transport/frame_link.h"

namespace millrace::worker {

// Watches what passes through a stage, for `eval --dump`. Step thread.
class StageTap {
 public:
  virtual ~StageTap() = default;
  // The residual stream of `num_rows` rows entering layer `layer` (layer ==
  // number of layers: leaving the last one). rows: [num_rows] as in the frame.
  virtual void OnHidden(int64_t layer, const transport::Frame& frame,
                        const float* hidden, int64_t num_rows,
                        int64_t hidden_size) = 0;
  // Logits of one row.
  virtual void OnLogits(const transport::Row& row, const float* logits,
                        int64_t vocab_size) = 0;
};

struct LoadProgress {
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;
};

// Always-on counters, readable from any thread.
struct StageCounters {
  int64_t frames = 0;
  int64_t rows = 0;
  absl::Duration busy;             // computing
  absl::Duration wait_for_input;   // no frame
  absl::Duration wait_for_credit;  // downstream has no room
  int64_t sequences_open = 0;
  int64_t kv_blocks_used = 0;
  int64_t kv_blocks_total = 0;
};

// One stage: weights, KV pools and the step thread that turns frames from
// upstream into frames for downstream. Create loads; Start and Stop from the
// owner's thread; counters from any thread.
class StageRunner {
 public:
  struct Options {
    StageConfig config;
    const kernels::KernelTable* kernels = nullptr;  // outlives the runner
    StageTap* tap = nullptr;                        // nullable, outlives it
    // Called from loading threads, now and then; nullable.
    std::function<void(const LoadProgress&)> progress;
    // Makes KV pools and scratch resident at load instead of at first use, so
    // that a worker never grows while it serves.
    bool touch_memory = false;
    // Asked by loading threads between reads and while memory is made resident;
    // true ends loading with kCancelled. Nullable.
    std::function<bool()> cancelled;
  };
  // Reads this stage's byte ranges from `checkpoint`, which is not needed
  // afterwards. InputError for damaged weights, kResourceExhausted when memory
  // or threads cannot be had.
  static absl::StatusOr<std::unique_ptr<StageRunner>> Create(
      const model::Checkpoint& checkpoint, Options options);

  virtual ~StageRunner() = default;
  [[nodiscard]] virtual const StageMemory& memory() const = 0;

  // Starts the step thread on a fresh epoch: all sequences are dropped.
  // `on_end` runs on the step thread, once, when a link fails or Stop is
  // called, with the reason. The stage can then be started again.
  virtual void Start(uint64_t epoch,
                     std::unique_ptr<transport::FrameReceiver> upstream,
                     std::unique_ptr<transport::FrameSender> downstream,
                     std::function<void(absl::Status)> on_end) = 0;
  // Ends the pass under way, closes both links and joins the step thread.
  // Idempotent.
  virtual void Stop() = 0;
  [[nodiscard]] virtual StageCounters Counters() const = 0;
};

}  // namespace millrace::worker
