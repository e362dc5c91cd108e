#include "planner/families/config_sheet.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "planner/families/family_readers.h"

namespace millrace::planner {
namespace {

using FamilyReader = absl::StatusOr<ModelSheet> (*)(ConfigReader&);

struct Family {
  absl::string_view model_type;
  FamilyReader read;
};

// Those of models with pictures keep the text model's sizes in `text_config`;
// its own types stand for text models published alone.
constexpr Family kFamilies[] = {
    {"deepseek_v3", ReadDeepseekV3}, {"gemma2", ReadGemma},
    {"gemma3", ReadGemma},           {"gemma3_text", ReadGemma},
    {"gemma4", ReadGemma4},          {"gemma4_text", ReadGemma4},
    {"gemma4_unified", ReadGemma4},  {"gemma4_unified_text", ReadGemma4},
    {"gpt_oss", ReadGptOss},         {"kimi_k2", ReadDeepseekV3},
    {"kimi_k25", ReadDeepseekV3},    {"kimi_k3", ReadKimiLinear},
    {"kimi_linear", ReadKimiLinear}, {"lfm2", ReadLfm2},
    {"lfm2_moe", ReadLfm2},          {"qwen3_5", ReadQwen3Next},
    {"qwen3_5_moe", ReadQwen3Next},  {"qwen3_5_moe_text", ReadQwen3Next},
    {"qwen3_5_text", ReadQwen3Next}, {"qwen3_next", ReadQwen3Next},
};

constexpr char kTextConfig[] = "text_config";

const Family* Find(absl::string_view model_type) {
  const auto* const found = std::find_if(
      std::begin(kFamilies), std::end(kFamilies),
      [&](const Family& family) { return family.model_type == model_type; });
  return found == std::end(kFamilies) ? nullptr : found;
}

absl::Status WithRemedy(const absl::Status& status) {
  return status.ok() || !HintOf(status).empty()
             ? status
             : WithHint(status,
                        "use the config.json that the model was published "
                        "with");
}

absl::StatusOr<ModelSheet> Read(const JsonObject& config,
                                const std::string& object) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            config.StringOr("model_type", ""));
  const Family* family = Find(type);
  if (family == nullptr) {
    return config.ErrorAt(
        "model_type",
        absl::StrCat("the architecture '", Printable(type), "' is not known"));
  }
  std::optional<JsonObject> inner;
  if (config.Has(kTextConfig)) {
    MILLRACE_ASSIGN_OR_RETURN(inner, config.Object(kTextConfig));
  }
  ConfigReader reader(object, config, inner.has_value() ? *inner : config);
  MILLRACE_ASSIGN_OR_RETURN(ModelSheet sheet, family->read(reader));
  sheet.family = type;
  MILLRACE_RETURN_IF_ERROR(CheckSheet(sheet, object));
  return sheet;
}

}  // namespace

absl::StatusOr<bool> IsPlannedFamily(const JsonObject& config) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            config.StringOr("model_type", ""));
  return Find(type) != nullptr;
}

absl::StatusOr<ModelSheet> ReadConfigSheet(const JsonObject& config,
                                           const std::string& object) {
  absl::StatusOr<ModelSheet> sheet = Read(config, object);
  if (!sheet.ok()) {
    return WithRemedy(sheet.status());
  }
  return sheet;
}

std::vector<std::string> PlannedFamilies() {
  std::vector<std::string> out;
  for (const Family& family : kFamilies) {
    out.emplace_back(family.model_type);
  }
  return out;
}

}  // namespace millrace::planner
