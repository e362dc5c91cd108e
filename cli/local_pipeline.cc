#include "cli/local_pipeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "cli/kernel_choices.h"
#include "cli/local_links.h"
#include "model/spec/stage_memory.h"
#include "stage-worker/runtime/stage_shape.h"

namespace millrace::cli {
namespace {

constexpr uint64_t kEpoch = 1;

absl::Status CheckMemory(const model::ModelSpec& spec,
                         const PipelineConfig& config,
                         const ComputeOptions& options) {
  if (!options.memory_bytes.has_value()) {
    return absl::OkStatus();
  }
  const int64_t need = ResidentBytes(spec, config, 0, config.stages.size());
  if (need <= *options.memory_bytes) {
    return absl::OkStatus();
  }
  return AnswerIsNo(
      "--memory",
      absl::StrCat("the model needs ", HumanSize(need), " of ",
                   HumanSize(*options.memory_bytes)),
      "lower --context, --concurrency or --chunk, or give more memory");
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalPipeline>> LocalPipeline::Start(
    const model::Checkpoint& checkpoint, Options options) {
  std::unique_ptr<LocalPipeline> pipeline(new LocalPipeline());
  pipeline->kernels_ = kernels::BuildKernelTable(options.compute.isa);
  pipeline->kernel_uses_ = KernelUses(pipeline->kernels_);
  pipeline->config_ =
      MakePipelineConfig(checkpoint.spec(), options.compute, options.sequences,
                         FirstLayers(checkpoint.spec(), options.compute));
  MILLRACE_RETURN_IF_ERROR(
      CheckMemory(checkpoint.spec(), pipeline->config_, options.compute));
  MILLRACE_RETURN_IF_ERROR(pipeline->Load(checkpoint, options));
  MILLRACE_RETURN_IF_ERROR(pipeline->Connect(checkpoint, options));
  return pipeline;
}

LocalPipeline::~LocalPipeline() {
  if (engine_ != nullptr) {
    engine_->Disconnect(absl::CancelledError("the pipeline is closed"));
  }
  for (const auto& runner : runners_) {
    runner->Stop();
  }
}

absl::Status LocalPipeline::Load(const model::Checkpoint& checkpoint,
                                 const Options& options) {
  int64_t bytes_before = 0;
  int64_t bytes_total = 0;
  std::vector<int64_t> stage_bytes;
  for (const worker::StageConfig& stage : config_.stages) {
    stage_bytes.push_back(
        model::StageBytesOf(checkpoint.spec(), worker::ShapeOf(stage))
            .weights_bytes);
    bytes_total += stage_bytes.back();
  }
  for (size_t i = 0; i < config_.stages.size(); ++i) {
    worker::StageRunner::Options stage;
    stage.config = config_.stages[i];
    stage.kernels = &kernels_;
    stage.tap = options.tap;
    stage.cancelled = options.cancelled;
    if (options.progress) {
      stage.progress = [&, i](const worker::LoadProgress& progress) {
        // Scaled to bytes in memory, which is what the total counts.
        const double share =
            static_cast<double>(progress.bytes_done) /
            static_cast<double>(std::max<int64_t>(progress.bytes_total, 1));
        options.progress(
            {bytes_before + static_cast<int64_t>(
                                share * static_cast<double>(stage_bytes[i])),
             bytes_total});
      };
    }
    MILLRACE_ASSIGN_OR_RETURN(
        std::unique_ptr<worker::StageRunner> runner,
        worker::StageRunner::Create(checkpoint, std::move(stage)));
    runners_.push_back(std::move(runner));
    names_.push_back(absl::StrCat("stage-", i));
    bytes_before += stage_bytes[i];
  }
  return absl::OkStatus();
}

absl::Status LocalPipeline::Connect(const model::Checkpoint& checkpoint,
                                    const Options& options) {
  coordinator::PipelineEngine::Options engine;
  engine.core =
      MakeCoreConfig(checkpoint.spec(), options.compute, config_, names_);
  engine.stages = [this] { return Snapshots(); };
  MILLRACE_ASSIGN_OR_RETURN(
      engine_, coordinator::PipelineEngine::Create(std::move(engine)));
  const bool tcp = options.compute.transport == TransportChoice::kTcp;
  MILLRACE_ASSIGN_OR_RETURN(std::vector<LocalLink> links,
                            MakeLocalLinks(config_, kEpoch, tcp));
  // links[i] leads into stage i; the last one back to the engine.
  for (size_t i = 0; i < runners_.size(); ++i) {
    runners_[i]->Start(kEpoch, std::move(links[i].receiver),
                       std::move(links[i + 1].sender),
                       [this, i](const absl::Status& status) {
                         engine_->Disconnect(MakeError(
                             absl::StatusCode::kUnavailable, names_[i],
                             absl::StrCat("ended: ", status.message())));
                       });
  }
  return engine_->Connect(kEpoch, std::move(links.front().sender),
                          std::move(links.back().receiver));
}

worker::StageMemory LocalPipeline::memory() const {
  worker::StageMemory sum;
  for (const auto& runner : runners_) {
    sum.weights_bytes += runner->memory().weights_bytes;
    sum.kv_bytes += runner->memory().kv_bytes;
    sum.scratch_bytes += runner->memory().scratch_bytes;
  }
  return sum;
}

std::vector<coordinator::StageSnapshot> LocalPipeline::Snapshots() const {
  std::vector<coordinator::StageSnapshot> snapshots;
  for (size_t i = 0; i < runners_.size(); ++i) {
    const worker::StageCounters counters = runners_[i]->Counters();
    coordinator::StageSnapshot& stage = snapshots.emplace_back();
    stage.name = names_[i];
    stage.first_layer = config_.stages[i].first_layer;
    stage.last_layer = config_.stages[i].last_layer;
    stage.busy = counters.busy;
    stage.wait_for_input = counters.wait_for_input;
    stage.wait_for_credit = counters.wait_for_credit;
    stage.frames = counters.frames;
    stage.rows = counters.rows;
    stage.kv_blocks_used = counters.kv_blocks_used;
    stage.kv_blocks_total = counters.kv_blocks_total;
    stage.kernels = kernel_uses_;
  }
  return snapshots;
}

}  // namespace millrace::cli
