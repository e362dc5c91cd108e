#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "model/spec/model_spec.h"
#include "model/spec/stage_memory.h"
#include "planner/costs.h"
#include "planner/model_sheet.h"
#include "planner/process_bytes.h"

namespace millrace::cli {

// A model to be planned for: of a checkpoint, or of its configuration alone,
// then also one of a family that the engine does not run.
struct PlannedModel {
  // Of a family that the engine does not run only the sizes, with layers that
  // have no operations.
  model::ModelSpec spec;
  bool runs = true;  // whether the engine knows the family
  planner::ModelSheet sheet;

  // What a stage of this shape allocates and does, per layer.
  [[nodiscard]] planner::ModelCosts Costs(const model::StageShape& shape) const;
  // Scratch of a node, and what its process takes beside it. Borrows this
  // model.
  [[nodiscard]] planner::ScratchFunction Scratch(
      const model::StageShape& shape,
      const planner::ProcessBytes& process) const;
  // Vectors per token across a cut, at most.
  [[nodiscard]] int64_t VectorsMax() const;
};

// `path`: a checkpoint, a config.json, or a folder with a config.json and no
// weights. InputError naming file and key.
absl::StatusOr<PlannedModel> OpenPlannedModel(const std::string& path);

// Whether `path` is a configuration without weights: the path of its file.
// Empty: it is not.
std::string LoneConfig(const std::string& path);

// The sheet of a configuration whose family the engine does not run; nothing
// where it runs it. InputError that names the families for one that is unknown.
absl::StatusOr<std::optional<planner::ModelSheet>> ReadPlannedFamily(
    const std::string& path);

}  // namespace millrace::cli
