#include "cli/check/checked_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "planner/cluster_codec.h"

namespace millrace::cli {
namespace {

constexpr int64_t kPlanBytesMax = int64_t{256} << 20;

absl::StatusOr<const boost::json::array*> NotEmptyList(const JsonObject& plan,
                                                       absl::string_view key) {
  const Json* list = plan.Find(key);
  if (list == nullptr || !list->is_array() || list->get_array().empty()) {
    return plan.ErrorAt(key, "must be a list of at least one entry");
  }
  return &list->get_array();
}

absl::Status ReadModel(const JsonObject& plan, absl::string_view object,
                       CheckedPlan& out) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject model, plan.Object("model"));
  MILLRACE_ASSIGN_OR_RETURN(out.model_name, model.StringOr("name", ""));
  MILLRACE_ASSIGN_OR_RETURN(out.model_digest, model.StringOr("digest", ""));
  MILLRACE_ASSIGN_OR_RETURN(out.model_path, model.StringOr("path", ""));
  if (out.model_digest.empty()) {
    return InputError(object, "is the plan of a cost file, not of a model",
                      "make one with `plan MODEL --cluster FILE --out PLAN`");
  }
  return absl::OkStatus();
}

absl::Status ReadStages(const JsonObject& plan, absl::string_view object,
                        CheckedPlan& out) {
  MILLRACE_ASSIGN_OR_RETURN(const boost::json::array* stages,
                            NotEmptyList(plan, "stages"));
  std::set<std::string> names;
  for (const Json& entry : *stages) {
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject stage,
                              JsonObject::From(entry, object, "stages"));
    CheckedPlan::Stage read;
    MILLRACE_ASSIGN_OR_RETURN(read.node, stage.String("node"));
    MILLRACE_ASSIGN_OR_RETURN(
        read.resident_bytes,
        stage.Integer("resident_bytes", 0,
                      std::numeric_limits<int64_t>::max()));
    if (!names.insert(read.node).second) {
      return stage.ErrorAt("node", "is given twice");
    }
    out.stages.push_back(std::move(read));
  }
  return absl::OkStatus();
}

absl::Status ReadHops(const JsonObject& plan, absl::string_view object,
                      CheckedPlan& out) {
  MILLRACE_ASSIGN_OR_RETURN(const boost::json::array* route,
                            NotEmptyList(plan, "route"));
  std::set<absl::string_view> names;
  for (const CheckedPlan::Stage& stage : out.stages) {
    names.insert(stage.node);
  }
  std::string before;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Json& entry : *route) {
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject segment,
                              JsonObject::From(entry, object, "route"));
    MILLRACE_ASSIGN_OR_RETURN(const std::string node, segment.String("node"));
    if (!names.contains(node)) {
      return segment.ErrorAt("node", "has no entry in stages");
    }
    if (!before.empty() && before != node &&
        seen.insert(std::minmax(before, node)).second) {
      out.hops.push_back({before, node, std::nullopt, std::nullopt});
    }
    before = node;
  }
  return absl::OkStatus();
}

// What the plan was made to expect of its links.
absl::Status ReadExpected(const JsonObject& plan, absl::string_view object,
                          CheckedPlan& out) {
  if (!plan.Has("inputs")) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject inputs, plan.Object("inputs"));
  const Json* text = inputs.Find("cluster");
  if (text == nullptr) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const planner::Cluster cluster,
      planner::ParseCluster(WriteJson(*text),
                            absl::StrCat(object, ": inputs.cluster")));
  std::map<absl::string_view, int64_t> places;
  for (const planner::Node& node : cluster.nodes) {
    places.emplace(node.name, static_cast<int64_t>(places.size()));
  }
  std::map<std::pair<int64_t, int64_t>, CheckedPlan::Hop*> hops;
  const auto expect = [](CheckedPlan::Hop& hop, const planner::Link& link) {
    hop.bandwidth = link.bandwidth;
    hop.latency_s = link.latency_s;
  };
  for (CheckedPlan::Hop& hop : out.hops) {
    const auto from = places.find(hop.from);
    const auto to = places.find(hop.to);
    if (from != places.end() && to != places.end()) {
      hops.emplace(std::minmax(from->second, to->second), &hop);
      expect(hop, cluster.link_default);
    }
  }
  for (const planner::NodePairLink& pair : cluster.links) {
    if (const auto hop = hops.find(std::minmax(pair.node_a, pair.node_b));
        hop != hops.end()) {
      expect(*hop->second, pair.link);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckedPlan> Read(absl::string_view text,
                                 absl::string_view object) {
  MILLRACE_ASSIGN_OR_RETURN(
      const Json document,
      ParseJson(text, object, {.bytes_max = kPlanBytesMax}));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject plan,
                            JsonObject::From(document, object));
  MILLRACE_RETURN_IF_ERROR(plan.Integer("version", 1, 1).status());
  MILLRACE_ASSIGN_OR_RETURN(const bool fits, plan.BoolOr("fits", true));
  if (!fits) {
    return InputError(object, "is the plan of a model that does not fit",
                      "make one that fits");
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::string placement,
                            plan.StringOr("placement", ""));
  if (placement == "streamed") {
    return InputError(object,
                      "is a streamed plan: workers of this version hold all "
                      "experts in memory and cannot run it",
                      "make a plan without --placement streamed");
  }
  CheckedPlan out;
  MILLRACE_RETURN_IF_ERROR(ReadModel(plan, object, out));
  MILLRACE_RETURN_IF_ERROR(ReadStages(plan, object, out));
  MILLRACE_RETURN_IF_ERROR(ReadHops(plan, object, out));
  MILLRACE_RETURN_IF_ERROR(ReadExpected(plan, object, out));
  return out;
}

}  // namespace

absl::StatusOr<CheckedPlan> ReadCheckedPlan(absl::string_view text,
                                            absl::string_view object) {
  absl::StatusOr<CheckedPlan> plan = Read(text, object);
  if (!plan.ok() && HintOf(plan.status()).empty()) {
    return WithHint(plan.status(), "make the plan anew with plan --out");
  }
  return plan;
}

}  // namespace millrace::cli
