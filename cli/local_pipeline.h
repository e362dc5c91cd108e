#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/compute_options.h"
#include "cli/pipeline_config.h"
#include "coordinator/engine/pipeline_engine.h"
#include "kernels/kernel_table.h"
#include "model/checkpoint/checkpoint.h"
#include "proto/kernel_use.h"
#include "stage-worker/runtime/stage_runner.h"

namespace millrace::cli {

// A pipeline whose stages all live in this process, over in-process links or
// TCP on loopback. Main thread; the engine as its header says.
class LocalPipeline {
 public:
  struct Options {
    ComputeOptions compute;  // fitted to the model
    int64_t sequences = 1;
    worker::StageTap* tap = nullptr;
    // Loading: bytes done and in all, of all stages; any thread.
    std::function<void(const worker::LoadProgress&)> progress;
    // Asked while loading, by any thread; true ends it with kCancelled.
    std::function<bool()> cancelled;
  };
  // Loads and connects everything. AnswerIsNo when --memory is not enough.
  static absl::StatusOr<std::unique_ptr<LocalPipeline>> Start(
      const model::Checkpoint& checkpoint, Options options);
  ~LocalPipeline();
  LocalPipeline(const LocalPipeline&) = delete;
  LocalPipeline& operator=(const LocalPipeline&) = delete;

  [[nodiscard]] coordinator::Engine& engine() { return *engine_; }
  [[nodiscard]] const PipelineConfig& config() const { return config_; }
  // Bytes of all stages, by kind.
  [[nodiscard]] worker::StageMemory memory() const;

 private:
  LocalPipeline() = default;
  absl::Status Load(const model::Checkpoint& checkpoint,
                    const Options& options);
  absl::Status Connect(const model::Checkpoint& checkpoint,
                       const Options& options);
  [[nodiscard]] std::vector<coordinator::StageSnapshot> Snapshots() const;

  PipelineConfig config_;
  kernels::KernelTable kernels_;
  std::vector<control::KernelUse> kernel_uses_;  // of the table
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<worker::StageRunner>> runners_;
  std::unique_ptr<coordinator::PipelineEngine> engine_;
};

}  // namespace millrace::cli
