#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "model/checkpoint/checkpoint.h"
#include "model/spec/stage_memory.h"
#include "stage-worker/runtime/stage_shape.h"
#include "stage-worker/server/resident_bytes.h"
#include "stage-worker/server/stage_factory.h"

namespace millrace::worker {
namespace {

kernels::ComputeMode ToCompute(control::ComputeMode mode) {
  return mode == control::ComputeMode::kFast ? kernels::ComputeMode::kFast
                                             : kernels::ComputeMode::kExact;
}

kernels::KvType ToKv(control::KvType type) {
  switch (type) {
    case control::KvType::kF32:
      return kernels::KvType::kF32;
    case control::KvType::kF16:
      return kernels::KvType::kF16;
    case control::KvType::kBf16:
      return kernels::KvType::kBf16;
    case control::KvType::kInt8:
      return kernels::KvType::kInt8;
  }
  return kernels::KvType::kF32;
}

int ThreadsOf(int asked, int own) {
  if (asked > 0 || own > 0) {
    return asked > 0 ? asked : own;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

StageConfig ConfigOf(const control::Stage& stage, int own_threads) {
  StageConfig config;
  config.first_layer = stage.first_layer;
  config.last_layer = stage.last_layer;
  config.holds_embedding = stage.holds_embedding;
  config.holds_head = stage.holds_head;
  config.compute = ToCompute(stage.compute);
  config.kv_type = ToKv(stage.kv_type);
  config.context = stage.context;
  config.sequences = stage.sequences;
  config.slots = stage.slots;
  config.rows_max = stage.rows_max;
  config.prefill_chunk = stage.prefill_chunk;
  config.num_threads = ThreadsOf(stage.num_threads, own_threads);
  return config;
}

class CheckpointStageFactory final : public StageFactory {
 public:
  explicit CheckpointStageFactory(const CheckpointStageOptions& options)
      : options_(options) {}

  absl::StatusOr<std::unique_ptr<StageRunner>> Create(
      const control::Load& load,
      std::function<void(const LoadProgress&)> progress,
      std::function<bool()> cancelled) override;

 private:
  [[nodiscard]] absl::Status CheckStage(const model::ModelSpec& spec,
                                        const StageConfig& config) const;
  [[nodiscard]] absl::Status CheckMemory(const model::ModelSpec& spec,
                                         const StageConfig& config) const;

  const CheckpointStageOptions options_;
};

absl::Status CheckpointStageFactory::CheckStage(
    const model::ModelSpec& spec, const StageConfig& config) const {
  const int64_t num_layers = static_cast<int64_t>(spec.layers.size());
  if (config.last_layer >= num_layers ||
      config.holds_embedding != (config.first_layer == 0) ||
      config.holds_head != (config.last_layer == num_layers - 1)) {
    return MakeError(absl::StatusCode::kInvalidArgument, spec.name,
                     absl::StrCat("has ", Counted(num_layers, "layer"),
                                  ", the plan asks for ", config.first_layer,
                                  " to ", config.last_layer));
  }
  return absl::OkStatus();
}

absl::Status CheckpointStageFactory::CheckMemory(
    const model::ModelSpec& spec, const StageConfig& config) const {
  if (options_.memory_bytes == 0) {
    return absl::OkStatus();
  }
  const model::StageBytes bytes = model::StageBytesOf(spec, ShapeOf(config));
  const int64_t needed = bytes.total() + ResidentBytes();
  if (needed <= options_.memory_bytes) {
    return absl::OkStatus();
  }
  return AnswerIsNo(
      absl::StrCat("layers ", config.first_layer, " to ", config.last_layer),
      absl::StrCat("need ", HumanSize(needed), " (weights ",
                   HumanSize(bytes.weights_bytes), ", KV ",
                   HumanSize(bytes.kv_bytes), ", scratch ",
                   HumanSize(bytes.scratch_bytes),
                   " and the program), the "
                   "budget is ",
                   HumanSize(options_.memory_bytes)),
      "raise --memory, or lower --context or --concurrency, or use more "
      "workers");
}

absl::StatusOr<std::unique_ptr<StageRunner>> CheckpointStageFactory::Create(
    const control::Load& load,
    std::function<void(const LoadProgress&)> progress,
    std::function<bool()> cancelled) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string path,
                            LocalModelPath(options_.models_dir, load.model));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<model::Checkpoint> checkpoint,
                            model::Checkpoint::Open(path));
  const model::ModelSpec& spec = checkpoint->spec();
  if (spec.digest != load.model_digest) {
    return InputError(path, "is another model than the coordinator's",
                      "copy the same files to every node");
  }
  const StageConfig config = ConfigOf(load.stage, options_.num_threads);
  MILLRACE_RETURN_IF_ERROR(CheckStage(spec, config));
  MILLRACE_RETURN_IF_ERROR(CheckMemory(spec, config));
  StageRunner::Options options;
  options.config = config;
  options.kernels = options_.kernels;
  options.progress = std::move(progress);
  options.cancelled = std::move(cancelled);
  options.touch_memory = true;
  return StageRunner::Create(*checkpoint, std::move(options));
}

}  // namespace

std::unique_ptr<StageFactory> MakeCheckpointStageFactory(
    const CheckpointStageOptions& options) {
  return std::make_unique<CheckpointStageFactory>(options);
}

absl::StatusOr<std::string> LocalModelPath(const std::string& models_dir,
                                           const std::string& model) {
  if (models_dir.empty()) {
    return model;
  }
  absl::string_view rest = model;
  while (!rest.empty() && rest.back() == '/') {
    rest.remove_suffix(1);
  }
  const size_t slash = rest.rfind('/');
  const absl::string_view name =
      slash == absl::string_view::npos ? rest : rest.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    return UsageError(Printable(model),
                      "has no file name to look for in "
                      "--models");
  }
  return absl::StrCat(models_dir, absl::EndsWith(models_dir, "/") ? "" : "/",
                      name);
}

}  // namespace millrace::worker
