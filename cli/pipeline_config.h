#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/compute_options.h"
#include "coordinator/core/core_config.h"
#include "model/spec/model_spec.h"
#include "stage-worker/runtime/stage_config.h"
#include "transport/frame.h"
#include "transport/frame_link.h"

namespace millrace::cli {

// How a pipeline of these options is built: the same for stages in this process
// and for workers elsewhere.
struct PipelineConfig {
  std::vector<worker::StageConfig> stages;  // in the order of the route
  transport::FrameLimits limits;
  int64_t microbatches = 1;  // N that circulate
};

// First layers of the stages: the cuts that were given, or even ones.
std::vector<int64_t> FirstLayers(const model::ModelSpec& spec,
                                 const ComputeOptions& options);

// `sequences`: worst cases the KV pools hold. `first_layers`: of each stage.
PipelineConfig MakePipelineConfig(const model::ModelSpec& spec,
                                  const ComputeOptions& options,
                                  int64_t sequences,
                                  const std::vector<int64_t>& first_layers);

// What the coordinator's core must know of it. `names`: of the stages.
coordinator::CoreConfig MakeCoreConfig(const model::ModelSpec& spec,
                                       const ComputeOptions& options,
                                       const PipelineConfig& pipeline,
                                       const std::vector<std::string>& names);

// `to_coordinator`: the links from and to the coordinator hold all circulating
// micro-batches, so that it never waits; their frames carry no hidden state.
// Between stages a few frames overlap transfer and computation.
transport::LinkOptions MakeLinkOptions(const PipelineConfig& pipeline,
                                       uint64_t epoch, bool checksum,
                                       bool to_coordinator);

// Bytes of the program itself beside what stages allocate: code, libraries,
// tables, thread stacks, the session with the coordinator; frame buffers aside.
// Measured, with a stage loaded and running (x86-64, Debian 12): 25.5 to 26
// MiB.
inline constexpr int64_t kProgramBytes = int64_t{26} << 20;

// What the process holding these stages will have resident.
int64_t ResidentBytes(const model::ModelSpec& spec,
                      const PipelineConfig& pipeline, size_t first_stage,
                      size_t num_stages);

// Bytes of the frame buffers at one end of a link between two stages, or from
// or to the coordinator.
int64_t LinkBufferBytes(const PipelineConfig& pipeline, bool to_coordinator);

}  // namespace millrace::cli
