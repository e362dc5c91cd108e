#include "planner/plan_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "planner/cluster_codec.h"
#include "planner/cost_model.h"
#include "planner/costs_codec.h"
#include "planner/plan_names.h"
#include "planner/plan_numbers.h"
#include "planner/streamed/held_costs.h"
#include "planner/yaml_map.h"

namespace millrace::planner {
namespace {

using NodeIndex = absl::flat_hash_map<std::string, int64_t>;

// Scratch by what a node holds: the first layer of its first run is no other
// node's.
struct KnownScratch {
  std::vector<LayerRun> runs;
  int64_t bytes = 0;
};
using ScratchByLayer = absl::flat_hash_map<int64_t, KnownScratch>;

ScratchFunction ScratchFrom(ScratchByLayer known) {
  int64_t largest = 0;
  for (const auto& [layer, scratch] : known) {
    largest = std::max(largest, scratch.bytes);
  }
  if (largest == 0) {
    return {};
  }
  return [known = std::move(known), largest](std::span<const LayerRun> runs) {
    const auto found = known.find(runs.empty() ? -1 : runs.front().begin);
    return found != known.end() && std::equal(runs.begin(), runs.end(),
                                              found->second.runs.begin(),
                                              found->second.runs.end())
               ? found->second.bytes
               : largest;
  };
}

class PlanFileReader {
 public:
  explicit PlanFileReader(absl::string_view object) : object_(object) {}

  absl::StatusOr<PlanFile> Read(const Yaml& document) {
    MILLRACE_ASSIGN_OR_RETURN(const YamlMap top,
                              YamlMap::From(document, object_, ""));
    MILLRACE_RETURN_IF_ERROR(CheckVersion(top));
    MILLRACE_RETURN_IF_ERROR(ReadInputs(top));
    MILLRACE_ASSIGN_OR_RETURN(const std::string fits, top.String("fits"));
    if (fits != "true" && fits != "false") {
      return top.ErrorAt("fits", "must be true or false", kHint);
    }
    file_.plan.objective = file_.options.objective;
    file_.plan.placement = file_.options.placement;
    if (fits == "true") {
      file_.plan.fits = true;
      MILLRACE_RETURN_IF_ERROR(ReadRoute(top));
      MILLRACE_RETURN_IF_ERROR(ReadScratch(top));
      MILLRACE_RETURN_IF_ERROR(WorkOut(top));
    }
    if (const Yaml* verdict = top.Find("verdict"); verdict != nullptr) {
      file_.plan.verdict = Printable(verdict->scalar, 1000);
    }
    return std::move(file_);
  }

 private:
  static constexpr char kHint[] = "make the plan anew with plan --out";

  static absl::Status CheckVersion(const YamlMap& top) {
    MILLRACE_ASSIGN_OR_RETURN(const int64_t version,
                              top.IntegerOr("version", 0, 1'000'000, 0));
    return version == 1 ? absl::OkStatus()
                        : top.ErrorAt("version", "must be 1", kHint);
  }

  absl::Status ReadInputs(const YamlMap& top) {
    MILLRACE_ASSIGN_OR_RETURN(const YamlMap inputs, MapAt(top, "inputs"));
    const Yaml* cluster = inputs.Find("cluster");
    const Yaml* costs = inputs.Find("costs");
    if (cluster == nullptr || costs == nullptr) {
      return inputs.ErrorAt(cluster == nullptr ? "cluster" : "costs",
                            "is missing", kHint);
    }
    MILLRACE_ASSIGN_OR_RETURN(
        file_.cluster,
        ReadCluster(*cluster, object_, inputs.PathOf("cluster")));
    MILLRACE_ASSIGN_OR_RETURN(
        file_.costs, ReadCosts(*costs, object_, inputs.PathOf("costs")));
    for (size_t i = 0; i < file_.cluster.nodes.size(); ++i) {
      index_.emplace(file_.cluster.nodes[i].name, static_cast<int64_t>(i));
    }
    MILLRACE_ASSIGN_OR_RETURN(const YamlMap options, MapAt(inputs, "options"));
    return ReadOptions(options);
  }

  absl::StatusOr<YamlMap> MapAt(const YamlMap& map, absl::string_view key) {
    const Yaml* value = map.Find(key);
    if (value == nullptr) {
      return map.ErrorAt(key, "is missing", kHint);
    }
    return YamlMap::From(*value, object_, map.PathOf(key));
  }

  // Keys that later versions may add are passed over.
  absl::Status ReadOptions(const YamlMap& map) {
    PlanOptions& options = file_.options;
    MILLRACE_ASSIGN_OR_RETURN(const std::string objective,
                              map.String("objective"));
    MILLRACE_ASSIGN_OR_RETURN(const std::string placement,
                              map.String("placement"));
    const std::optional<Objective> known = ObjectiveNamed(objective);
    const std::optional<PlacementKind> kind = PlacementNamed(placement);
    if (!known.has_value() || !kind.has_value()) {
      return map.ErrorAt(known.has_value() ? "placement" : "objective",
                         "is not known", kHint);
    }
    options.objective = *known;
    options.placement = *kind;
    const std::pair<const char*, std::optional<int64_t>*> numbers[] = {
        {"concurrency", &options.concurrency},
        {"prompt_len", &options.prompt_len},
        {"output_len", &options.output_len},
        {"chunk", &options.chunk}};
    for (const auto& [key, value] : numbers) {
      MILLRACE_ASSIGN_OR_RETURN(const int64_t number,
                                map.IntegerOr(key, 1, kLengthMax, 0));
      if (number > 0) {
        *value = number;
      }
    }
    const Yaml* contexts = map.Find("contexts");
    if (contexts == nullptr || contexts->kind != Yaml::Kind::kList ||
        contexts->list.empty() || contexts->list.size() > kContextsMax) {
      return map.ErrorAt(
          "contexts",
          absl::StrCat("must be a list of 1 to ", kContextsMax, " lengths"),
          kHint);
    }
    options.contexts.clear();
    for (const Yaml& value : contexts->list) {
      int64_t context = 0;
      if (!absl::SimpleAtoi(value.scalar, &context) || context < 1 ||
          context > kLengthMax) {
        return map.ErrorAt("contexts", "has one that is no length", kHint);
      }
      options.contexts.push_back(context);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> NodeOf(const YamlMap& map) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string name, map.String("node"));
    const auto found = index_.find(name);
    if (found == index_.end()) {
      return map.ErrorAt(
          "node",
          absl::StrCat("'", Printable(name), "' is no node of inputs.cluster"),
          kHint);
    }
    return found->second;
  }

  absl::StatusOr<const Yaml*> ListAt(const YamlMap& map,
                                     absl::string_view key) {
    const Yaml* list = map.Find(key);
    if (list == nullptr || list->kind != Yaml::Kind::kList ||
        list->list.empty()) {
      return map.ErrorAt(key, "must be a list of at least one entry", kHint);
    }
    return list;
  }

  absl::Status ReadRoute(const YamlMap& top) {
    MILLRACE_ASSIGN_OR_RETURN(const Yaml* list, ListAt(top, "route"));
    const auto layers = static_cast<int64_t>(file_.costs.layers.size());
    int64_t next = 0;
    for (size_t i = 0; i < list->list.size(); ++i) {
      MILLRACE_ASSIGN_OR_RETURN(const YamlMap map,
                                YamlMap::From(list->list[i], object_,
                                              absl::StrCat("route[", i, "]")));
      RouteEntry entry;
      MILLRACE_ASSIGN_OR_RETURN(entry.node, NodeOf(map));
      MILLRACE_ASSIGN_OR_RETURN(entry.first_layer,
                                map.IntegerOr("first_layer", 0, layers, -1));
      MILLRACE_ASSIGN_OR_RETURN(entry.last_layer,
                                map.IntegerOr("last_layer", 0, layers, -1));
      if (entry.first_layer != next || entry.last_layer < next ||
          entry.last_layer >= layers) {
        return map.ErrorAt(
            "first_layer",
            absl::StrCat("layers ", entry.first_layer, " to ", entry.last_layer,
                         " do not follow on ", next - 1, " of ",
                         Counted(layers, "layer")),
            kHint);
      }
      next = entry.last_layer + 1;
      file_.plan.route.push_back(entry);
    }
    if (next != layers) {
      return top.ErrorAt("route",
                         absl::StrCat("ends before layer ", layers - 1), kHint);
    }
    file_.plan.route = MergeRoute(file_.plan.route);
    return absl::OkStatus();
  }

  absl::Status ReadScratch(const YamlMap& top) {
    MILLRACE_ASSIGN_OR_RETURN(const Yaml* list, ListAt(top, "stages"));
    absl::flat_hash_map<int64_t, int64_t> by_node;
    for (size_t i = 0; i < list->list.size(); ++i) {
      MILLRACE_ASSIGN_OR_RETURN(const YamlMap map,
                                YamlMap::From(list->list[i], object_,
                                              absl::StrCat("stages[", i, "]")));
      MILLRACE_ASSIGN_OR_RETURN(const int64_t node, NodeOf(map));
      MILLRACE_ASSIGN_OR_RETURN(const int64_t bytes,
                                map.SizeOr("scratch_bytes", 0));
      by_node.emplace(node, bytes);
    }
    ScratchByLayer known;
    std::vector<NodeRuns> nodes = RunsByNode(file_.plan.route);
    for (NodeRuns& node : nodes) {
      const auto found = by_node.find(node.node);
      if (found == by_node.end()) {
        return top.ErrorAt("stages", "lacks a node of the route", kHint);
      }
      const int64_t first = node.runs.front().begin;
      known.emplace(first, KnownScratch{std::move(node.runs), found->second});
    }
    file_.scratch = ScratchFrom(std::move(known));
    return absl::OkStatus();
  }

  absl::Status WorkOut(const YamlMap& top) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string placement,
                              top.String("placement"));
    const std::optional<PlacementKind> kind = PlacementNamed(placement);
    if (!kind.has_value() || *kind == PlacementKind::kAuto) {
      return top.ErrorAt("placement",
                         "must be contiguous, interleaved or streamed", kHint);
    }
    file_.plan.placement = *kind;
    const CostModel model(file_.costs, file_.cluster, file_.options.contexts[0],
                          file_.scratch);
    if (*kind == PlacementKind::kStreamed) {
      return WorkOutStreamed(top, model);
    }
    for (const NodeRuns& node : RunsByNode(file_.plan.route)) {
      if (!model.Fits(node.node, node.runs, file_.options.sequences())) {
        return top.ErrorAt(
            "stages",
            absl::StrCat(
                "need more memory than node ",
                Printable(
                    file_.cluster.nodes[static_cast<size_t>(node.node)].name),
                " has"),
            kHint);
      }
    }
    FillNumbers(model, file_.options, file_.plan);
    return absl::OkStatus();
  }

  absl::Status WorkOutStreamed(const YamlMap& top, const CostModel& model) {
    if (RunsByNode(file_.plan.route).size() != file_.plan.route.size()) {
      return top.ErrorAt(
          "route", "names a node twice, which a streamed plan does not", kHint);
    }
    MILLRACE_RETURN_IF_ERROR(streamed::CheckExperts(
        file_.costs, absl::StrCat(object_, ": inputs.costs")));
    if (const absl::Status filled = streamed::FillStreamed(
            streamed::StreamedNodes(model, file_.options.sequences()),
            file_.options, file_.plan);
        !filled.ok()) {
      return top.ErrorAt("stages",
                         "need more memory or NVMe space than their nodes have",
                         kHint);
    }
    return absl::OkStatus();
  }

  const std::string object_;
  PlanFile file_;
  NodeIndex index_;
};

}  // namespace

absl::StatusOr<PlanFile> ParsePlan(absl::string_view text,
                                   absl::string_view object) {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml document, ParseYaml(text, object));
  return PlanFileReader(object).Read(document);
}

}  // namespace millrace::planner
