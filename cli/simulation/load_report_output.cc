#include "cli/simulation/load_report_output.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"

namespace millrace::cli {
namespace {

using coordinator::Arrivals;
using coordinator::LoadReport;
using coordinator::NodeLoad;
using coordinator::Samples;
using coordinator::ServiceLimits;

constexpr double kMilliseconds = 1000;

struct NamedSamples {
  absl::string_view name;
  Samples* samples;
};

std::vector<NamedSamples> LatenciesOf(LoadReport& report) {
  return {{"ttft", &report.ttft},
          {"tpot", &report.tpot},
          {"itl", &report.itl},
          {"e2el", &report.e2el}};
}

std::vector<std::pair<absl::string_view, std::optional<absl::Duration>>>
LimitsOf(const ServiceLimits& limits) {
  return {{"ttft", limits.ttft}, {"tpot", limits.tpot}, {"e2el", limits.e2el}};
}

// Requests a second that were sent; as in vLLM a text where clients wait.
Json RequestRate(const SimulatedLoad& load) {
  const Arrivals& arrivals = load.options.workload.arrivals;
  if (arrivals.concurrency > 0) {
    return "inf";
  }
  if (arrivals.trace.empty()) {
    return arrivals.rate;
  }
  const double seconds = absl::ToDoubleSeconds(load.report.arriving);
  return seconds > 0 ? Json(static_cast<double>(load.report.requests) / seconds)
                     : Json("inf");
}

Json SloJson(const SimulatedLoad& load) {
  const ServiceLimits& limits = load.options.limits;
  if (!limits.any()) {
    return nullptr;
  }
  boost::json::object slo;
  for (const auto& [name, limit] : LimitsOf(limits)) {
    if (limit.has_value()) {
      slo[absl::StrCat(name, "_ms")] =
          absl::ToDoubleSeconds(*limit) * kMilliseconds;
    }
  }
  slo["kept"] = load.report.good;
  slo["met"] = load.report.MeetsLimits();
  return slo;
}

std::string LimitsText(const ServiceLimits& limits) {
  std::vector<std::string> parts;
  for (const auto& [name, limit] : LimitsOf(limits)) {
    if (limit.has_value()) {
      parts.push_back(absl::StrCat(name, " <= ", HumanDuration(*limit)));
    }
  }
  return absl::StrJoin(parts, ", ");
}

std::string Verdict(const SimulatedLoad& load) {
  const LoadReport& report = load.report;
  const ServiceLimits& limits = load.options.limits;
  if (!limits.any()) {
    return absl::StrFormat("%d of %s completed in %s", report.completed,
                           Counted(report.requests, "request"),
                           HumanDuration(report.duration));
  }
  const std::string kept = absl::StrFormat(
      "%.2f %% of the %d completed requests kept %s, %d failed",
      report.completed == 0 ? 0.0
                            : 100.0 * static_cast<double>(report.good) /
                                  static_cast<double>(report.completed),
      report.completed, LimitsText(limits), report.failed());
  if (!load.rate_searched) {
    return absl::StrCat(
        report.MeetsLimits() ? "meets the limits: " : "misses the limits: ",
        kept);
  }
  return absl::StrFormat(
      "%.4g requests/s is the highest rate that meets the limits: %s%s",
      load.options.workload.arrivals.rate, kept,
      load.rate_unbounded
          ? "\nall requests came at once, so that a higher rate is the same: "
            "give more --requests"
          : "");
}

void AppendLatencies(LoadReport& report, std::string& out) {
  absl::StrAppendFormat(&out, "\n%-5s %10s %10s %10s %10s %10s\n", "", "mean",
                        "median", "p90", "p95", "p99");
  for (const NamedSamples& one : LatenciesOf(report)) {
    absl::StrAppendFormat(&out, "%-5s %10s", one.name,
                          HumanDuration(absl::Seconds(one.samples->Mean())));
    for (const double percent : {50.0, 90.0, 95.0, 99.0}) {
      absl::StrAppendFormat(
          &out, " %10s",
          HumanDuration(absl::Seconds(one.samples->Percentile(percent))));
    }
    out += '\n';
  }
}

void AppendFailures(const LoadReport& report, std::string& out) {
  if (report.failed() > 0) {
    absl::StrAppendFormat(
        &out,
        "failed: %d refused, %d waited too long, %d lost; the first: %s\n",
        report.refused, report.expired, report.lost, report.first_error);
  }
}

// The busiest first; a long pipeline's others are alike.
void AppendNodes(const LoadReport& report, std::string& out) {
  constexpr size_t kShown = 20;
  std::vector<NodeLoad> nodes = report.nodes;
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const NodeLoad& a, const NodeLoad& b) {
                     return a.busy_share > b.busy_share;
                   });
  absl::StrAppendFormat(&out, "\n%-20s %6s\n", "node", "busy");
  for (size_t i = 0; i < std::min(kShown, nodes.size()); ++i) {
    absl::StrAppendFormat(&out, "%-20s %5.1f%%\n", Printable(nodes[i].name),
                          100 * nodes[i].busy_share);
  }
  if (nodes.size() > kShown) {
    absl::StrAppendFormat(&out, "and %d more, none busier\n",
                          nodes.size() - kShown);
  }
}

// What vLLM has no key for.
void AppendOwnKeys(const SimulatedLoad& load, boost::json::object& json) {
  const LoadReport& report = load.report;
  json["seed"] = load.options.workload.seed;
  json["refused"] = report.refused;
  json["expired"] = report.expired;
  json["lost"] = report.lost;
  json["first_error"] = report.first_error.empty()
                            ? Json(nullptr)
                            : Json(boost::json::string(report.first_error));
  json["slo"] = SloJson(load);
  json["sequence_reads"] = load.beyond.sequence_reads;
  json["coordinator_s"] = load.beyond.coordinator_s;
  json["microbatches"] = report.microbatches;
  json["microbatches_wanted"] = report.microbatches_wanted;
  json["pipeline_fill"] = report.pipeline_fill;
  json["frames"] = report.frames;
  boost::json::array stages;
  for (const NodeLoad& node : report.nodes) {
    stages.push_back(boost::json::object{{"node", node.name},
                                         {"busy_share", node.busy_share}});
  }
  json["stages"] = std::move(stages);
}

}  // namespace

Json LoadReportToJson(SimulatedLoad& load, const std::string& date) {
  LoadReport& report = load.report;
  const Arrivals& arrivals = load.options.workload.arrivals;
  boost::json::object json;
  json["date"] = date;
  json["endpoint_type"] = "millrace-simulate";
  json["backend"] = "millrace-simulate";
  json["label"] = nullptr;
  json["model_id"] = load.model;
  json["tokenizer_id"] = nullptr;
  json["num_prompts"] = report.requests;
  json["request_rate"] = RequestRate(load);
  json["burstiness"] = arrivals.burstiness;
  json["max_concurrency"] =
      arrivals.concurrency > 0 ? Json(arrivals.concurrency) : Json(nullptr);
  json["duration"] = absl::ToDoubleSeconds(report.duration);
  json["completed"] = report.completed;
  json["failed"] = report.failed();
  json["total_input_tokens"] = report.input_tokens;
  json["total_output_tokens"] = report.output_tokens;
  json["request_throughput"] = report.PerSecond(report.completed);
  json["request_goodput"] = load.options.limits.any()
                                ? Json(report.PerSecond(report.good))
                                : Json(nullptr);
  json["output_throughput"] = report.PerSecond(report.output_tokens);
  json["total_token_throughput"] =
      report.PerSecond(report.input_tokens + report.output_tokens);
  json["max_output_tokens_per_s"] = report.output_tokens_per_s_max;
  json["max_concurrent_requests"] = report.concurrent_max;
  for (const NamedSamples& one : LatenciesOf(report)) {
    const auto put = [&](absl::string_view of, double seconds) {
      json[absl::StrCat(of, "_", one.name, "_ms")] = seconds * kMilliseconds;
    };
    put("mean", one.samples->Mean());
    put("median", one.samples->Percentile(50));
    put("std", one.samples->Deviation());
    put("p90", one.samples->Percentile(90));
    put("p95", one.samples->Percentile(95));
    put("p99", one.samples->Percentile(99));
  }
  AppendOwnKeys(load, json);
  return json;
}

std::string LoadReportText(SimulatedLoad& load) {
  LoadReport& report = load.report;
  std::string out = absl::StrCat(Verdict(load), "\n");
  AppendLatencies(report, out);
  out += '\n';
  AppendFailures(report, out);
  absl::StrAppendFormat(
      &out, "%.4g requests/s, %.5g output tokens/s, %.5g tokens/s in all\n",
      report.PerSecond(report.completed),
      report.PerSecond(report.output_tokens),
      report.PerSecond(report.input_tokens + report.output_tokens));
  absl::StrAppendFormat(
      &out,
      "at most %s at a time; micro-batches: %d, %.1f%% of them under way\n",
      Counted(report.concurrent_max, "request"), report.microbatches,
      100 * report.pipeline_fill);
  if (report.microbatches_wanted > report.microbatches) {
    absl::StrAppendFormat(
        &out,
        "%d micro-batches would fill the pipeline, a coordinator runs at most "
        "%d: nodes wait\n",
        report.microbatches_wanted, report.microbatches);
  }
  AppendNodes(report, out);
  return out;
}

}  // namespace millrace::cli
