// A config.json is refused or becomes costs; no size in it overflows a sum,
// crashes, hangs or takes more memory than its layers call for.

#include <cstddef>
#include <cstdint>

#include "base/json.h"
#include "planner/families/config_sheet.h"
#include "planner/single_node.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using millrace::JsonObject;
  namespace planner = millrace::planner;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = millrace::ParseJson(text, "fuzz");
  if (!json.ok()) {
    return 0;
  }
  const auto config = JsonObject::From(*json, "fuzz");
  if (!config.ok()) {
    return 0;
  }
  const auto sheet = planner::ReadConfigSheet(*config, "fuzz");
  if (!sheet.ok()) {
    return 0;
  }
  planner::SingleNodeOptions options;
  options.memory_bytes = int64_t{1} << 40;
  options.context = sheet->context_length;
  options.shape = {millrace::model::kKv16Bit, 256};
  options.nvme_bandwidth = 1e9;
  planner::CostsOfSheet(*sheet, options.shape);
  planner::PlanSingleNode(*sheet, options).status().IgnoreError();
  return 0;
}
