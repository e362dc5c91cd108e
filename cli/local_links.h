#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/pipeline_config.h"
#include "transport/frame_link.h"

namespace millrace::cli {

// The two ends of one link between two stages of this process.
struct LocalLink {
  std::unique_ptr<transport::FrameSender> sender;
  std::unique_ptr<transport::FrameReceiver> receiver;
};

// The ring of `num_stages` stages: one link more, the first from the
// coordinator, the last back to it; in process or over TCP on loopback.
absl::StatusOr<std::vector<LocalLink>> MakeLocalLinks(
    const PipelineConfig& pipeline, uint64_t epoch, bool tcp);

}  // namespace millrace::cli
