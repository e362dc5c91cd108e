#include "cli/pipeline_config.h"

#include <algorithm>

#include "model/spec/stage_memory.h"
#include "planner/even_cuts.h"
#include "stage-worker/runtime/stage_shape.h"

namespace millrace::cli {
namespace {

// More sequences than worst cases may be open: short ones take less KV than the
// longest. Four times as many is where slots stop to bind in practice; each
// costs a table row per KV group.
constexpr int64_t kSlotsPerSequence = 4;
constexpr int64_t kSlotsLeast = 8;
// One frame under way, one being filled, one being read.
constexpr uint32_t kStageWindow = 3;

}  // namespace

std::vector<int64_t> FirstLayers(const model::ModelSpec& spec,
                                 const ComputeOptions& options) {
  if (options.cuts.empty()) {
    return planner::EvenStages(spec, options.stages);
  }
  std::vector<int64_t> first_layers = {0};
  first_layers.insert(first_layers.end(), options.cuts.begin(),
                      options.cuts.end());
  return first_layers;
}

PipelineConfig MakePipelineConfig(const model::ModelSpec& spec,
                                  const ComputeOptions& options,
                                  int64_t sequences,
                                  const std::vector<int64_t>& first_layers) {
  PipelineConfig pipeline;
  const auto layers = static_cast<int64_t>(spec.layers.size());
  const int64_t slots = std::max(kSlotsLeast, sequences * kSlotsPerSequence);
  const int64_t chunk = std::min(options.chunk, options.context);
  for (size_t stage = 0; stage < first_layers.size(); ++stage) {
    const bool is_last = stage + 1 == first_layers.size();
    worker::StageConfig config;
    config.first_layer = first_layers[stage];
    config.last_layer = (is_last ? layers : first_layers[stage + 1]) - 1;
    config.holds_embedding = stage == 0;
    config.holds_head = is_last;
    config.compute = options.compute;
    config.kv_type = options.kv_type;
    config.context = options.context;
    config.sequences = sequences;
    config.slots = slots;
    config.rows_max = chunk + slots;
    config.prefill_chunk = chunk;
    config.num_threads = options.num_threads;
    pipeline.stages.push_back(config);
  }
  pipeline.limits.slots = static_cast<uint32_t>(slots);
  pipeline.limits.rows_max = static_cast<uint32_t>(chunk + slots);
  pipeline.limits.columns = static_cast<uint32_t>(spec.hidden_size);
  pipeline.limits.positions_max = static_cast<uint32_t>(options.context);
  pipeline.limits.vocab_size = static_cast<uint32_t>(spec.vocab_size);
  pipeline.limits.ops_max = static_cast<uint32_t>(2 * slots);
  pipeline.microbatches = coordinator::DefaultMicrobatches(
      static_cast<int64_t>(first_layers.size()), true);
  return pipeline;
}

coordinator::CoreConfig MakeCoreConfig(const model::ModelSpec& spec,
                                       const ComputeOptions& options,
                                       const PipelineConfig& pipeline,
                                       const std::vector<std::string>& names) {
  coordinator::CoreConfig core;
  for (size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    const worker::StageConfig& config = pipeline.stages[stage];
    coordinator::StagePool pool;
    pool.name = names[stage];
    pool.slots = config.slots;
    for (const model::KvGroup& group :
         model::KvGroupsOf(spec, worker::ShapeOf(config))) {
      if (group.window == 0) {
        pool.full_blocks = group.num_blocks;
      } else {
        pool.windows.push_back({group.blocks_per_sequence, group.num_blocks});
      }
    }
    core.stages.push_back(std::move(pool));
  }
  const worker::StageConfig& any = pipeline.stages.front();
  core.context = options.context;
  core.vocab_size = spec.vocab_size;
  core.chunk = any.prefill_chunk;
  core.rows_max = any.rows_max;
  core.ops_max = pipeline.limits.ops_max;
  core.microbatches = pipeline.microbatches;
  return core;
}

transport::LinkOptions MakeLinkOptions(const PipelineConfig& pipeline,
                                       uint64_t epoch, bool checksum,
                                       bool to_coordinator) {
  transport::LinkOptions link;
  link.limits = pipeline.limits;
  link.epoch = epoch;
  link.window = to_coordinator ? static_cast<uint32_t>(std::max<int64_t>(
                                     2, pipeline.microbatches + 1))
                               : kStageWindow;
  link.checksum = checksum;
  return link;
}

int64_t LinkBufferBytes(const PipelineConfig& pipeline, bool to_coordinator) {
  const transport::LinkOptions link =
      MakeLinkOptions(pipeline, 1, true, to_coordinator);
  transport::FrameLimits limits = link.limits;
  if (to_coordinator) {
    limits.columns = 0;
  }
  return int64_t{link.window} * limits.FrameBytesMax();
}

int64_t ResidentBytes(const model::ModelSpec& spec,
                      const PipelineConfig& pipeline, size_t first_stage,
                      size_t num_stages) {
  int64_t bytes = kProgramBytes;
  for (size_t stage = first_stage; stage < first_stage + num_stages; ++stage) {
    bytes += model::StageBytesOf(spec, worker::ShapeOf(pipeline.stages[stage]))
                 .total();
    bytes += LinkBufferBytes(pipeline, stage == 0);
    bytes += LinkBufferBytes(pipeline, stage + 1 == pipeline.stages.size());
  }
  return bytes;
}

}  // namespace millrace::cli
