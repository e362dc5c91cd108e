#include "cli/plan_single_node.h"

#include <array>
#include <optional>
#include <span>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/console.h"
#include "cli/pipeline_config.h"
#include "cli/report_line.h"
#include "planner/single_node.h"

namespace millrace::cli {
namespace {

namespace json = boost::json;

using planner::Range;
using planner::SingleNodeOptions;
using planner::SingleNodePlan;
using planner::StoredAs;

absl::StatusOr<StoredAs> ParseFormat(const char* option,
                                     const std::string& name, bool with_vq3) {
  for (const StoredAs format :
       {StoredAs::kKeep, StoredAs::kQ8_0, StoredAs::kQ4_0, StoredAs::kVq3}) {
    if (name == planner::NameOf(format) &&
        (with_vq3 || format != StoredAs::kVq3)) {
      return format;
    }
  }
  return UsageError(
      option, absl::StrCat("'", Printable(name), "' is no format"),
      with_vq3 ? "give keep, q8_0, q4_0 or vq3" : "give keep, q8_0 or q4_0");
}

absl::StatusOr<std::optional<double>> ParseBandwidth(const char* option,
                                                     const std::string& text) {
  if (text.empty()) {
    return std::optional<double>();
  }
  const absl::StatusOr<double> rate = ParseRate(text);
  if (!rate.ok() || *rate <= 0) {
    return UsageError(
        option, absl::StrCat("'", Printable(text), "' is no rate above 0"),
        "give bytes per second, as 3GB/s");
  }
  return std::optional<double>(*rate);
}

absl::StatusOr<SingleNodeOptions> MakeOptions(
    const PlannedModel& model, const SingleNodeFlags& flags,
    const SingleNodeWorkload& workload) {
  SingleNodeOptions options;
  if (flags.memory.empty()) {
    return UsageError("--memory", "is missing",
                      "give what the process may use, as --memory 64GB");
  }
  const absl::StatusOr<int64_t> memory = ParseSize(flags.memory);
  if (!memory.ok() || *memory < 1) {
    return UsageError(
        "--memory", absl::StrCat("'", Printable(flags.memory), "' is no size"),
        "give a size, as 64GB or 48GiB");
  }
  options.memory_bytes = *memory;
  MILLRACE_ASSIGN_OR_RETURN(options.experts,
                            ParseFormat("--experts", flags.experts, true));
  MILLRACE_ASSIGN_OR_RETURN(options.trunk,
                            ParseFormat("--trunk", flags.trunk, false));
  MILLRACE_ASSIGN_OR_RETURN(
      options.nvme_bandwidth,
      ParseBandwidth("--nvme-bandwidth", flags.nvme_bandwidth));
  MILLRACE_ASSIGN_OR_RETURN(
      options.memory_bandwidth,
      ParseBandwidth("--memory-bandwidth", flags.memory_bandwidth));
  options.context = workload.context;
  options.sequences = workload.sequences;
  options.shape = {workload.shape.kv, workload.shape.prefill_chunk};
  const planner::LayerRun all = {
      0, static_cast<int64_t>(model.sheet.layers.size())};
  options.scratch_bytes =
      model.Scratch(workload.shape, {.program = kProgramBytes})(
          std::span<const planner::LayerRun>(&all, 1));
  return options;
}

Json RangeJson(const Range& range) {
  json::object out;
  out["low"] = range.low;
  out["high"] = range.high;
  return out;
}

json::object FloorJson(const planner::MemoryFloor& floor) {
  json::object out;
  out["trunk_bytes"] = floor.trunk_bytes;
  out["kv_bytes"] = floor.kv_bytes;
  out["state_bytes"] = floor.state_bytes;
  out["scratch_bytes"] = floor.scratch_bytes;
  out["read_buffer_bytes"] = floor.read_buffer_bytes;
  out["working_set_bytes"] = floor.working_set_bytes;
  return out;
}

json::array AdviceJson(const SingleNodePlan& plan) {
  json::array out;
  for (const planner::Advice& advice : plan.advice) {
    json::object entry;
    entry["change"] = advice.change;
    entry["effect"] = advice.effect;
    out.push_back(std::move(entry));
  }
  return out;
}

json::object ProvenanceJson() {
  json::object out;
  out["memory_bytes"] = "given";
  for (const char* key :
       {"floor_bytes", "floor", "records", "record_bytes", "bundle_bytes",
        "bytes_per_cold_token", "cache_records", "cache_bytes", "hit_rate",
        "bytes_per_token", "memory_bytes_per_token", "tokens_per_s"}) {
    out[key] = "estimated";
  }
  return out;
}

json::object PlanJson(const PlannedModel& model,
                      const SingleNodeOptions& options,
                      const SingleNodePlan& plan) {
  json::object named;
  named["name"] = model.sheet.name;
  named["digest"] = model.sheet.digest;
  json::object out;
  out["version"] = 1;
  out["model"] = std::move(named);
  out["placement"] = "streamed";
  out["fits"] = plan.fits;
  out["verdict"] = plan.verdict;
  out["context"] = options.context;
  out["sequences"] = options.sequences;
  out["memory_bytes"] = options.memory_bytes;
  out["floor_bytes"] = plan.floor.total();
  out["floor"] = FloorJson(plan.floor);
  out["experts"] = planner::NameOf(options.experts);
  out["trunk"] = planner::NameOf(options.trunk);
  out["records"] = plan.records;
  out["records_per_token"] = plan.records_per_token;
  out["record_bytes"] = plan.record_bytes;
  out["bundle_bytes"] = plan.bundle_bytes;
  out["bytes_per_cold_token"] = plan.cold_bytes_per_token;
  out["memory_bytes_per_token"] = plan.memory_bytes_per_token;
  out["cache_records"] = plan.cache_records;
  out["cache_bytes"] = plan.cache_bytes;
  out["hit_rate"] = plan.fits ? RangeJson(plan.hit_rate) : Json(nullptr);
  out["bytes_per_token"] =
      plan.fits ? RangeJson(plan.bytes_per_token) : Json(nullptr);
  out["tokens_per_s"] = plan.tokens_per_s.has_value()
                            ? RangeJson(*plan.tokens_per_s)
                            : Json(nullptr);
  out["advice"] = AdviceJson(plan);
  out["provenance"] = ProvenanceJson();
  return out;
}

void Line(std::string& out, absl::string_view name, absl::string_view value) {
  AppendLine(out, name, value, 16);
}

std::string SizeOf(double bytes) {
  return HumanSize(static_cast<int64_t>(bytes));
}

std::string SizeRange(const Range& bytes) {
  return bytes.low == bytes.high
             ? SizeOf(bytes.low)
             : absl::StrCat(SizeOf(bytes.low), " to ", SizeOf(bytes.high));
}

void AppendFloor(const planner::MemoryFloor& floor, std::string& out) {
  Line(out, "floor", HumanSize(floor.total()));
  const std::array<std::pair<const char*, int64_t>, 6> parts = {{
      {"  trunk", floor.trunk_bytes},
      {"  KV", floor.kv_bytes},
      {"  state", floor.state_bytes},
      {"  scratch", floor.scratch_bytes},
      {"  read buffers", floor.read_buffer_bytes},
      {"  one layer", floor.working_set_bytes},
  }};
  for (const auto& [name, bytes] : parts) {
    Line(out, name, HumanSize(bytes));
  }
}

std::string PlanText(const SingleNodeOptions& options,
                     const SingleNodePlan& plan) {
  std::string out = absl::StrCat(plan.verdict, "\n");
  AppendFloor(plan.floor, out);
  if (plan.records > 0) {
    Line(out, "experts",
         absl::StrFormat("%d in records of %s, %d for a token: %s when cold",
                         plan.records, HumanSize(plan.record_bytes),
                         plan.records_per_token,
                         HumanSize(plan.cold_bytes_per_token)));
    Line(out, "on disk", HumanSize(plan.bundle_bytes));
  }
  if (!plan.fits) {
    return out;
  }
  if (plan.records > 0) {
    Line(out, "cache",
         absl::StrFormat("%s, %s; hits %.0f to %.0f %% (evenly used "
                         "experts; as measured on Kimi-Linear)",
                         Counted(plan.cache_records, "expert"),
                         HumanSize(plan.cache_bytes), 100 * plan.hit_rate.low,
                         100 * plan.hit_rate.high));
    Line(out, "read per token", SizeRange(plan.bytes_per_token));
  }
  Line(out, "from memory",
       absl::StrCat(SizeOf(plan.memory_bytes_per_token), " per token"));
  Line(out, "tokens/s",
       plan.tokens_per_s.has_value()
           ? absl::StrFormat("%.2g to %.2g%s", plan.tokens_per_s->low,
                             plan.tokens_per_s->high,
                             options.memory_bandwidth.has_value()
                                 ? ""
                                 : ", as far as reading allows; give "
                                   "--memory-bandwidth")
           : std::string("unknown; give --nvme-bandwidth and "
                         "--memory-bandwidth"));
  return out;
}

}  // namespace

void SingleNodeFlags::Define(CLI::App& app) {
  app.add_flag("--single-node", chosen,
               "One machine that reads experts from NVMe");
  app.add_option("--memory", memory, "With --single-node: its budget");
  app.add_option("--experts", experts,
                 "With --single-node: keep, q8_0, q4_0 or vq3");
  app.add_option("--trunk", trunk,
                 "With --single-node: keep, q8_0 or q4_0, for all else");
  app.add_option("--nvme-bandwidth", nvme_bandwidth,
                 "With --single-node: of reads, as 3GB/s");
  app.add_option("--memory-bandwidth", memory_bandwidth,
                 "With --single-node: as 60GB/s");
}

absl::Status SingleNodeFlags::CheckUnused() const {
  const std::array<std::pair<const char*, bool>, 5> given = {{
      {"--memory", !memory.empty()},
      {"--experts", experts != "keep"},
      {"--trunk", trunk != "keep"},
      {"--nvme-bandwidth", !nvme_bandwidth.empty()},
      {"--memory-bandwidth", !memory_bandwidth.empty()},
  }};
  for (const auto& [option, is_given] : given) {
    if (!chosen && is_given) {
      return UsageError(option, "goes with --single-node",
                        "a cluster file says what its nodes have");
    }
  }
  return absl::OkStatus();
}

absl::Status PlanOnSingleNode(const PlannedModel& model,
                              const SingleNodeFlags& flags,
                              const SingleNodeWorkload& workload,
                              Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(const SingleNodeOptions options,
                            MakeOptions(model, flags, workload));
  MILLRACE_ASSIGN_OR_RETURN(const SingleNodePlan plan,
                            planner::PlanSingleNode(model.sheet, options));
  const json::object document = PlanJson(model, options, plan);
  if (!workload.out.empty() && workload.out != "-") {
    MILLRACE_RETURN_IF_ERROR(WriteFileAtomically(
        workload.out, absl::StrCat(WriteJson(document), "\n")));
  }
  if (console.json()) {
    console.OutJson(document);
  } else {
    console.Out(workload.out == "-" ? absl::StrCat(WriteJson(document), "\n")
                                    : PlanText(options, plan));
  }
  if (plan.fits) {
    return absl::OkStatus();
  }
  return AnswerIsNo(
      "plan", plan.verdict,
      absl::StrCat("this would fit: ", plan.advice.front().change));
}

}  // namespace millrace::cli
