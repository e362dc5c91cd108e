#include "planner/criteria.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "planner/plan_names.h"

namespace millrace::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A field that is missing and where: "nodes[3] (a): memory_bandwidth".
struct Missing {
  std::string object;
  std::string field;
};

Missing MissingOf(const CostModel& model, int64_t node, std::string field) {
  return {absl::StrCat(
              "node ",
              Printable(model.cluster().nodes[static_cast<size_t>(node)].name)),
          std::move(field)};
}

std::string MissingOfLink(const Link& link, bool moves_bytes) {
  if (moves_bytes && !link.bandwidth.has_value()) {
    return "bandwidth";
  }
  return link.latency_s.has_value() ? "" : "latency";
}

std::optional<Missing> MissingInLinks(const CostModel& model) {
  const Cluster& cluster = model.cluster();
  const auto nodes = static_cast<int64_t>(cluster.nodes.size());
  bool moves_bytes = false;
  for (int64_t layer = 1; layer < model.num_layers(); ++layer) {
    moves_bytes = moves_bytes || model.CutBytes(layer) > 0;
  }
  for (const NodePairLink& pair : cluster.links) {
    if (std::string field = MissingOfLink(pair.link, moves_bytes);
        !field.empty()) {
      const auto name = [&](int64_t node) {
        return Printable(cluster.nodes[static_cast<size_t>(node)].name);
      };
      return Missing{absl::StrCat("link between ", name(pair.node_a), " and ",
                                  name(pair.node_b)),
                     std::move(field)};
    }
  }
  const bool default_used =
      static_cast<int64_t>(cluster.links.size()) < nodes * (nodes - 1) / 2;
  if (std::string field = MissingOfLink(cluster.link_default, moves_bytes);
      default_used && !field.empty()) {
    return Missing{"link_default", std::move(field)};
  }
  return std::nullopt;
}

std::optional<Missing> FirstMissing(const CostModel& model) {
  for (int64_t node = 0; node < model.num_nodes(); ++node) {
    if (std::string field = model.MissingRate(node, {0, model.num_layers()});
        !field.empty()) {
      return MissingOf(model, node, std::move(field));
    }
  }
  return MissingInLinks(model);
}

std::optional<Missing> MissingFor(Criterion criterion, const CostModel& model) {
  switch (criterion) {
    case Criterion::kNodesUsed:
    case Criterion::kSequences:
      return std::nullopt;
    case Criterion::kTokensPerJoule:
      for (int64_t node = 0; node < model.num_nodes(); ++node) {
        const Node& hardware = model.cluster().nodes[static_cast<size_t>(node)];
        if (!(hardware.power_w.value_or(0) > 0)) {
          return MissingOf(model, node, "power_w");
        }
      }
      return FirstMissing(model);
    case Criterion::kTokensPerSecond:
    case Criterion::kLoop:
    case Criterion::kCycle:
      return FirstMissing(model);
  }
  return std::nullopt;
}

bool IsCount(Criterion criterion) {
  return criterion == Criterion::kNodesUsed ||
         criterion == Criterion::kSequences;
}

}  // namespace

std::vector<Criterion> AllCriteriaOf(Objective objective) {
  switch (objective) {
    case Objective::kThroughput:
      return {Criterion::kTokensPerSecond, Criterion::kNodesUsed,
              Criterion::kLoop};
    case Objective::kConcurrency:
      return {Criterion::kSequences, Criterion::kCycle};
    case Objective::kLatency:
      return {Criterion::kLoop};
    case Objective::kNodes:
      return {Criterion::kNodesUsed, Criterion::kCycle};
    case Objective::kEnergy:
      return {Criterion::kTokensPerJoule};
  }
  return {};
}

absl::StatusOr<std::vector<Criterion>> CriteriaOf(Objective objective,
                                                  const CostModel& model) {
  std::vector<Criterion> known;
  for (const Criterion criterion : AllCriteriaOf(objective)) {
    const std::optional<Missing> missing = MissingFor(criterion, model);
    if (!missing.has_value()) {
      known.push_back(criterion);
      continue;
    }
    if (known.empty()) {
      return InputError(
          missing->object,
          absl::StrCat(missing->field, " is missing or 0, which the objective ",
                       NameOf(objective), " needs"),
          absl::StrCat("give ", missing->field,
                       " in the cluster file, or choose --objective nodes or "
                       "concurrency"));
    }
  }
  return known;
}

std::string MissingForTimes(const CostModel& model) {
  const std::optional<Missing> missing = FirstMissing(model);
  return missing.has_value()
             ? absl::StrCat(missing->object, ": ", missing->field)
             : "";
}

double CostOf(Criterion criterion, const Measures& measures) {
  const bool no_time = measures.cycle_s == 0.0;
  switch (criterion) {
    case Criterion::kTokensPerSecond:
      return no_time ? -kInfinity : -*measures.tokens_per_s;
    case Criterion::kNodesUsed:
      return static_cast<double>(measures.nodes_used);
    case Criterion::kLoop:
      return *measures.loop_s;
    case Criterion::kSequences:
      return measures.sequences.has_value()
                 ? -static_cast<double>(*measures.sequences)
                 : -kInfinity;
    case Criterion::kCycle:
      return *measures.cycle_s;
    case Criterion::kTokensPerJoule:
      return no_time ? -kInfinity : -*measures.tokens_per_s / *measures.watts;
  }
  return 0;
}

int Compare(std::span<const Criterion> criteria, const Measures& a,
            const Measures& b) {
  for (const Criterion criterion : criteria) {
    const double x = CostOf(criterion, a);
    const double y = CostOf(criterion, b);
    // Equal infinities: their difference is no number.
    if (x == y || (!IsCount(criterion) &&
                   std::fabs(x - y) <=
                       kEqualTimes * std::max(std::fabs(x), std::fabs(y)) &&
                   std::isfinite(x) && std::isfinite(y))) {
      continue;
    }
    return x < y ? -1 : 1;
  }
  return 0;
}

}  // namespace millrace::planner
