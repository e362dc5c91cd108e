#include "cli/replan_report.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/plan_table.h"
#include "planner/plan_codec.h"
#include "planner/plan_names.h"

namespace millrace::cli {
namespace {

namespace json = boost::json;
using planner::Cluster;
using planner::Plan;
using planner::replan::Moved;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

const std::string& NameOf(const Cluster& cluster, int64_t node) {
  return cluster.nodes[static_cast<size_t>(node)].name;
}

std::optional<int64_t> SequencesOf(const Plan& plan) {
  return plan.concurrency.empty() ? std::nullopt
                                  : plan.concurrency[0].sequences;
}

json::object MovedJson(const Moved& moved, const Cluster& cluster) {
  json::array layers;
  for (const planner::replan::MovedLayer& layer : moved.layers) {
    layers.push_back({{"layer", layer.layer},
                      {"to", json::string(NameOf(cluster, layer.to))}});
  }
  return {{"bytes", moved.bytes},
          {"layers", std::move(layers)},
          {"load_s", OrNull(moved.load_s)}};
}

// What people compare of a plan.
void AddNumbers(const Plan& plan, json::object& out) {
  out["nodes_used"] = plan.stages.size();
  out["cycle_s"] = OrNull(plan.cycle_s);
  out["loop_s"] = OrNull(plan.loop_s);
  out["tokens_per_s"] = OrNull(plan.tokens_per_s);
  out["tpot_s"] = OrNull(plan.tpot_s);
  out["ttft_s"] = OrNull(plan.ttft_s);
  out["sequences"] = OrNull(SequencesOf(plan));
}

json::array RouteJson(const Plan& plan, const Cluster& cluster) {
  json::array route;
  for (const planner::RouteEntry& entry : plan.route) {
    route.push_back({{"node", json::string(NameOf(cluster, entry.node))},
                     {"first_layer", entry.first_layer},
                     {"last_layer", entry.last_layer}});
  }
  return route;
}

// "fewest" or "best": which serves again first; "same"; null: unknown.
Json Sooner(const Moved& fewest, const Moved& best) {
  if (!fewest.load_s.has_value() || !best.load_s.has_value()) {
    return nullptr;
  }
  if (*fewest.load_s == *best.load_s) {
    return json::string("same");
  }
  return json::string(*fewest.load_s < *best.load_s ? "fewest" : "best");
}

void AddProvenance(std::initializer_list<const char*> keys, Json& document) {
  json::object& words = document.as_object()["provenance"].as_object();
  for (const char* key : keys) {
    words[key] = "estimated";
  }
}

// 0.1: a tenth more; nothing where unknown.
std::optional<double> ShareMore(const std::optional<double>& with,
                                const std::optional<double>& without) {
  return with.has_value() && without.has_value() && *without > 0
             ? std::optional<double>(*with / *without - 1)
             : std::nullopt;
}

std::optional<int64_t> SequencesMore(const planner::replan::PlanForLoad& of) {
  const std::optional<int64_t> with = SequencesOf(of.plan);
  const std::optional<int64_t> without = SequencesOf(of.keep);
  return with.has_value() && without.has_value()
             ? std::optional<int64_t>(*with - *without)
             : std::nullopt;
}

std::string Number(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.3g", *value) : "unknown";
}

std::string Time(const std::optional<double>& seconds) {
  return seconds.has_value() ? HumanDuration(absl::Seconds(*seconds))
                             : "unknown";
}

std::string Heading() {
  return absl::StrFormat("%-14s %7s %10s %12s %10s %10s %10s %6s\n", "",
                         "layers", "bytes", "loaded after", "tokens/s", "TPOT",
                         "sequences", "nodes");
}

std::string Row(const char* name, const Plan& plan, const Moved& moved) {
  const std::optional<int64_t> sequences = SequencesOf(plan);
  return absl::StrFormat(
      "%-14s %7d %10s %12s %10s %10s %10s %6d\n", name, moved.layers.size(),
      HumanSize(moved.bytes), Time(moved.load_s), Number(plan.tokens_per_s),
      Time(plan.tpot_s),
      sequences.has_value() ? absl::StrCat(*sequences) : "unbounded",
      plan.stages.size());
}

}  // namespace

Json ReplannedJson(const planner::PlanFile& file,
                   const planner::replan::Replanned& replanned) {
  const Cluster& cluster = replanned.cluster;
  Json document = planner::PlanToJson(replanned.plan, file.costs, cluster,
                                      replanned.options);
  if (!replanned.plan.fits) {
    document.as_object()["moved"] = nullptr;
    return document;
  }
  json::object moved = MovedJson(replanned.moved, cluster);
  moved["bound_bytes"] = replanned.bound_bytes;
  moved["exact"] = replanned.exact;
  json::object best = MovedJson(replanned.best_moved, cluster);
  best["placement"] = planner::NameOf(replanned.best.placement);
  best["route"] = RouteJson(replanned.best, cluster);
  AddNumbers(replanned.best, best);
  moved["best"] = std::move(best);
  moved["sooner"] = Sooner(replanned.moved, replanned.best_moved);
  document.as_object()["moved"] = std::move(moved);
  AddProvenance({"moved.bytes", "moved.layers.layer", "moved.load_s",
                 "moved.bound_bytes", "moved.best"},
                document);
  return document;
}

Json PlanForLoadJson(const planner::PlanFile& file,
                     const planner::PlanOptions& options,
                     const planner::replan::PlanForLoad& planned) {
  Json document =
      planner::PlanToJson(planned.plan, file.costs, file.cluster, options);
  json::object keep = {{"fits", planned.keep.fits}};
  AddNumbers(planned.keep, keep);
  keep["nodes_used"] = file.plan.stages.size();
  json::object gain = {
      {"keep", std::move(keep)},
      {"tokens_per_s",
       OrNull(ShareMore(planned.plan.tokens_per_s, planned.keep.tokens_per_s))},
      {"tpot_s", OrNull(ShareMore(planned.plan.tpot_s, planned.keep.tpot_s))},
      {"sequences",
       planned.plan.fits ? OrNull(SequencesMore(planned)) : Json(nullptr)}};
  document.as_object()["gain"] = std::move(gain);
  document.as_object()["moved"] =
      planned.plan.fits ? Json(MovedJson(planned.moved, file.cluster))
                        : Json(nullptr);
  AddProvenance(
      {"moved.bytes", "moved.layers.layer", "moved.load_s", "gain.keep",
       "gain.tokens_per_s", "gain.tpot_s", "gain.sequences"},
      document);
  return document;
}

std::string ReplannedText(const std::string& lost,
                          const planner::replan::Replanned& replanned) {
  std::string out = absl::StrCat("without ", Printable(lost), ": ",
                                 PlanTable(replanned.plan, replanned.cluster));
  if (!replanned.plan.fits) {
    return out;
  }
  const Moved& moved = replanned.moved;
  absl::StrAppend(&out, "\n", Heading(),
                  Row("fewest bytes", replanned.plan, moved),
                  Row("best anew", replanned.best, replanned.best_moved));
  if (moved.layers.empty()) {
    absl::StrAppend(&out, "nothing moves: the lost nodes held no layers\n");
  } else {
    absl::StrAppend(&out,
                    moved.bytes == replanned.bound_bytes
                        ? "no plan moves fewer bytes\n"
                        : absl::StrCat("no plan moves fewer than ",
                                       HumanSize(replanned.bound_bytes), "\n"));
  }
  const Json sooner = Sooner(moved, replanned.best_moved);
  absl::StrAppend(
      &out,
      sooner.is_null()
          ? "which would be back sooner is unknown: the cluster file says "
            "neither nvme.bandwidth nor link_default.bandwidth\n"
      : sooner.as_string() == "same" ? "both would be back at the same time\n"
      : sooner.as_string() == "best"
          ? "the best plan anew would be back sooner\n"
          : "the plan that moves the fewest bytes would be back sooner\n");
  return out;
}

std::string PlanForLoadText(const planner::Cluster& cluster,
                            const planner::replan::PlanForLoad& planned) {
  std::string out = PlanTable(planned.plan, cluster);
  if (!planned.plan.fits) {
    return out;
  }
  absl::StrAppend(&out, "\n", Heading());
  if (planned.keep.fits) {
    absl::StrAppend(&out, Row("present route", planned.keep, Moved()));
  } else {
    const std::optional<int64_t> held = SequencesOf(planned.keep);
    absl::StrAppend(
        &out, "the present route does not hold this load",
        held.has_value()
            ? absl::StrCat(": ", Counted(*held, "sequence"), " at most")
            : "",
        "\n");
  }
  absl::StrAppend(&out, Row("this plan", planned.plan, planned.moved));
  if (const auto more =
          ShareMore(planned.plan.tokens_per_s, planned.keep.tokens_per_s)) {
    absl::StrAppendFormat(&out, "%+.3g %% tokens/s\n", 100 * *more);
  }
  if (planned.moved.layers.empty()) {
    absl::StrAppend(&out, "the present route stays: no better one was found\n");
  }
  return out;
}

}  // namespace millrace::cli
