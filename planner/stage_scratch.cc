#include "planner/stage_scratch.h"

#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace millrace::planner {

ScratchFunction ScratchOf(const model::ModelSpec& spec,
                          const model::StageShape& shape,
                          const ProcessBytes& process) {
  const auto layers = static_cast<int64_t>(spec.layers.size());
  using Known = absl::flat_hash_map<std::pair<int64_t, int64_t>, int64_t>;
  return [&spec, shape, process, layers,
          known = std::make_shared<Known>()](std::span<const LayerRun> runs) {
    int64_t bytes = process.Of(runs, layers);
    for (const LayerRun& run : runs) {
      const auto [found, is_new] =
          known->emplace(std::make_pair(run.begin, run.end), 0);
      if (is_new) {
        model::StageShape stage = shape;
        stage.first_layer = run.begin;
        stage.last_layer = run.end - 1;
        stage.holds_embedding = run.begin == 0;
        stage.holds_head = run.end == layers;
        stage.sequences = 1;
        found->second = model::StageScratchBytes(spec, stage);
      }
      bytes += found->second;
    }
    return bytes;
  };
}

}  // namespace millrace::planner
