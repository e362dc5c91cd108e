#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "proto/control_messages.h"
#include "stage-worker/runtime/stage_runner.h"

namespace millrace::worker {

// Makes the stage that a Load asks for. One thread at a time.
class StageFactory {
 public:
  virtual ~StageFactory() = default;
  // Blocks while weights are read. `progress` is called from loading threads,
  // now and then; kCancelled soon after `cancelled` says true.
  virtual absl::StatusOr<std::unique_ptr<StageRunner>> Create(
      const control::Load& load,
      std::function<void(const LoadProgress&)> progress,
      std::function<bool()> cancelled) = 0;
};

struct CheckpointStageOptions {
  // Folder where models lie by their file name; empty: the coordinator's path
  // is used as it is.
  std::string models_dir;
  int64_t memory_bytes = 0;  // hard budget of the process; 0: not limited
  int num_threads = 0;       // where the plan leaves it open; 0: all cores
  const kernels::KernelTable* kernels = nullptr;  // outlives the factory
};

// From a checkpoint on this machine. InputError: missing, damaged or another
// model than the coordinator's; AnswerIsNo: exceeds the budget.
std::unique_ptr<StageFactory> MakeCheckpointStageFactory(
    const CheckpointStageOptions& options);

// The path of a model on this machine: `model` itself, or its last part in
// `models_dir`. UsageError where it has none.
absl::StatusOr<std::string> LocalModelPath(const std::string& models_dir,
                                           const std::string& model);

}  // namespace millrace::worker
