#include "cli/planned_model.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "cli/model_host.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/digest.h"
#include "model/checkpoint/hf_config.h"
#include "model/checkpoint/spec_from_config.h"
#include "planner/families/config_sheet.h"
#include "planner/sheet_scratch.h"
#include "planner/spec_costs.h"
#include "planner/spec_sheet.h"
#include "planner/stage_scratch.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kConfigBytesMax = int64_t{16} << 20;
constexpr char kConfigName[] = "config.json";

// config.json is called by its folder, other files by their own name.
std::string NameOfConfig(const std::string& path) {
  std::error_code error;
  fs::path full = fs::weakly_canonical(path, error);
  if (error) {
    full = path;
  }
  return Printable(full.filename() == kConfigName
                       ? full.parent_path().filename().string()
                       : full.stem().string());
}

absl::Status CheckFamily(const JsonObject& config) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            config.StringOr("model_type", ""));
  std::vector<std::string> known = model::HfFamilies();
  if (type.empty() ||
      std::find(known.begin(), known.end(), type) != known.end()) {
    return absl::OkStatus();
  }
  for (std::string& family : planner::PlannedFamilies()) {
    known.push_back(std::move(family));
  }
  std::sort(known.begin(), known.end());
  return WithHint(
      config.ErrorAt("model_type",
                     absl::StrCat("the architecture '", Printable(type),
                                  "' is not known")),
      absl::StrCat("known are ", absl::StrJoin(known, ", "),
                   "; or describe the model by --costs"));
}

// Sizes alone, for what does not depend on the operations.
model::ModelSpec OutlineOf(const planner::ModelSheet& sheet) {
  model::ModelSpec out;
  out.name = sheet.name;
  out.family = sheet.family;
  out.digest = sheet.digest;
  out.hidden_size = sheet.hidden_size;
  out.vocab_size = sheet.vocab_size;
  out.context_length = sheet.context_length;
  out.layers.resize(sheet.layers.size());
  return out;
}

absl::StatusOr<PlannedModel> ReadConfig(const std::string& path) {
  PlannedModel out;
  MILLRACE_ASSIGN_OR_RETURN(std::optional<planner::ModelSheet> sheet,
                            ReadPlannedFamily(path));
  if (sheet.has_value()) {
    out.runs = false;
    out.sheet = *std::move(sheet);
    out.spec = OutlineOf(out.sheet);
    return out;
  }
  MILLRACE_ASSIGN_OR_RETURN(out.spec, model::SpecFromConfig(path));
  out.spec.name = NameOfConfig(path);
  out.sheet = planner::SheetOfSpec(out.spec);
  MILLRACE_RETURN_IF_ERROR(
      planner::CheckSheet(out.sheet, Printable(path, 512)));
  return out;
}

absl::StatusOr<PlannedModel> OpenConfig(const std::string& path) {
  absl::StatusOr<PlannedModel> model = ReadConfig(path);
  if (!model.ok() && HintOf(model.status()).empty()) {
    return WithHint(model.status(),
                    "use the config.json that the model was published with");
  }
  return model;
}

bool HoldsWeights(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (absl::EndsWith(name, ".safetensors") ||
        absl::EndsWith(name, ".safetensors.index.json")) {
      return true;
    }
  }
  return error.operator bool();
}

}  // namespace

planner::ModelCosts PlannedModel::Costs(const model::StageShape& shape) const {
  const planner::CostsShape kept = {shape.kv, shape.prefill_chunk};
  return runs ? planner::CostsOfSpec(spec, kept)
              : planner::CostsOfSheet(sheet, kept);
}

planner::ScratchFunction PlannedModel::Scratch(
    const model::StageShape& shape,
    const planner::ProcessBytes& process) const {
  return runs ? planner::ScratchOf(spec, shape, process)
              : planner::ScratchOfSheet(sheet, {shape.rows_max,
                                                process,
                                                shape.sequences,
                                                shape.context,
                                                {shape.kv, shape.prefill_chunk},
                                                shape.slots});
}

int64_t PlannedModel::VectorsMax() const {
  int64_t most = 1;
  for (const planner::LayerSheet& layer : sheet.layers) {
    most = std::max(most, layer.vectors);
  }
  return most;
}

std::string LoneConfig(const std::string& path) {
  if (!IsDirectory(path)) {
    return absl::EndsWith(path, ".json") ? path : std::string();
  }
  const std::string config = absl::StrCat(path, "/", kConfigName);
  return FileExists(config) && !HoldsWeights(path) ? config : std::string();
}

absl::StatusOr<std::optional<planner::ModelSheet>> ReadPlannedFamily(
    const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(path, kConfigBytesMax));
  const std::string object = Printable(path, 512);
  MILLRACE_ASSIGN_OR_RETURN(const Json json, ParseJson(text, object));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject config,
                            JsonObject::From(json, object));
  MILLRACE_ASSIGN_OR_RETURN(const bool planned,
                            planner::IsPlannedFamily(config));
  if (!planned) {
    MILLRACE_RETURN_IF_ERROR(CheckFamily(config));
    return std::optional<planner::ModelSheet>();
  }
  MILLRACE_ASSIGN_OR_RETURN(planner::ModelSheet sheet,
                            planner::ReadConfigSheet(config, object));
  sheet.name = NameOfConfig(path);
  MILLRACE_ASSIGN_OR_RETURN(
      sheet.digest, model::CheckpointDigest(text, model::WeightFiles()));
  return std::optional<planner::ModelSheet>(std::move(sheet));
}

absl::StatusOr<PlannedModel> OpenPlannedModel(const std::string& path) {
  if (const std::string config = LoneConfig(path); !config.empty()) {
    return OpenConfig(config);
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<model::Checkpoint> checkpoint,
                            OpenCheckpoint(path));
  PlannedModel out;
  out.spec = checkpoint->spec();
  out.sheet = planner::SheetOfSpec(out.spec);
  return out;
}

}  // namespace millrace::cli
