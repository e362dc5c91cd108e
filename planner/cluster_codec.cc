#include "planner/cluster_codec.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "planner/yaml_map.h"

namespace millrace::planner {
namespace {

// Labels and rates of all nodes together: a short file of many copies must not
// take all memory.
constexpr int64_t kEntriesMax = 2'000'000;

using NodeIndex = absl::flat_hash_map<std::string, int64_t>;

absl::StatusOr<std::map<std::string, std::string>> ReadLabels(
    const YamlMap& map) {
  std::map<std::string, std::string> labels;
  const Yaml* value = map.Find("labels");
  if (value == nullptr) {
    return labels;
  }
  if (value->kind != Yaml::Kind::kMap) {
    return map.ErrorAt("labels", "must be a map of names to values",
                       "write it as {rack: r1}");
  }
  for (size_t i = 0; i < value->keys.size(); ++i) {
    const std::string& key = value->keys[i];
    const Yaml& label = value->values[i];
    if (label.kind != Yaml::Kind::kScalar || key.size() > kTextMax ||
        label.scalar.size() > kTextMax) {
      return map.ErrorAt(
          absl::StrCat("labels.", key),
          absl::StrCat("must be a text of at most ", kTextMax, " bytes"),
          "write it as rack: r1");
    }
    labels[key] = label.scalar;
  }
  return labels;
}

// {default: 4e12, q4_0: 9e12} or a plain number.
absl::StatusOr<std::map<std::string, double>> ReadCompute(
    const YamlMap& map, absl::string_view object) {
  std::map<std::string, double> rates;
  const Yaml* value = map.Find("compute");
  if (value == nullptr) {
    return rates;
  }
  if (value->kind == Yaml::Kind::kScalar) {
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<double> rate,
                              map.Positive("compute"));
    rates[kComputeDefault] = *rate;
    return rates;
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const YamlMap fields,
      YamlMap::From(*value, object, map.PathOf("compute")));
  for (const std::string& key : value->keys) {
    if (key.size() > kTextMax) {
      return fields.ErrorAt(key, "is no weight format",
                            "name it as inspect does, or default");
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<double> rate,
                              fields.Positive(key));
    if (rate.has_value()) {
      rates[key] = *rate;
    }
  }
  return rates;
}

absl::Status ReadNvme(const YamlMap& map, absl::string_view object,
                      Node& node) {
  const Yaml* value = map.Find("nvme");
  if (value == nullptr) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(const YamlMap nvme,
                            YamlMap::From(*value, object, map.PathOf("nvme")));
  MILLRACE_RETURN_IF_ERROR(nvme.OnlyKeys({"bandwidth", "space"}));
  MILLRACE_ASSIGN_OR_RETURN(node.nvme_bandwidth, nvme.Rate("bandwidth"));
  MILLRACE_ASSIGN_OR_RETURN(node.nvme_bytes, nvme.Size("space"));
  return absl::OkStatus();
}

class ClusterReader {
 public:
  explicit ClusterReader(absl::string_view object) : object_(object) {}

  absl::StatusOr<Cluster> Read(const Yaml& document, absl::string_view path) {
    MILLRACE_ASSIGN_OR_RETURN(const YamlMap top,
                              YamlMap::From(document, object_, path));
    MILLRACE_RETURN_IF_ERROR(top.OnlyKeys({"version", "nodes", "link_default",
                                           "links", "reserve", "constraints"}));
    MILLRACE_ASSIGN_OR_RETURN(const int64_t version,
                              top.IntegerOr("version", 0, 1'000'000, 0));
    if (version != 1) {
      return top.ErrorAt("version", "must be 1", "give version: 1");
    }
    MILLRACE_RETURN_IF_ERROR(ReadNodes(top));
    if (const Yaml* value = top.Find("link_default"); value != nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(
          const YamlMap link,
          YamlMap::From(*value, object_, top.PathOf("link_default")));
      MILLRACE_RETURN_IF_ERROR(link.OnlyKeys({"bandwidth", "latency"}));
      MILLRACE_ASSIGN_OR_RETURN(cluster_.link_default, ReadLink(link));
    }
    MILLRACE_RETURN_IF_ERROR(ReadLinks(top));
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<int64_t> reserve,
                              top.Size("reserve"));
    cluster_.reserve_bytes = reserve.value_or(0);
    MILLRACE_RETURN_IF_ERROR(ReadConstraints(top));
    return std::move(cluster_);
  }

 private:
  static absl::StatusOr<Link> ReadLink(const YamlMap& map) {
    Link link;
    MILLRACE_ASSIGN_OR_RETURN(link.bandwidth, map.Rate("bandwidth"));
    MILLRACE_ASSIGN_OR_RETURN(link.latency_s, map.Seconds("latency"));
    return link;
  }

  absl::Status AddNode(const YamlMap& map, Node node) {
    const auto index = static_cast<int64_t>(cluster_.nodes.size());
    if (index >= kNodesMax) {
      return map.ErrorAt("count",
                         absl::StrCat("makes more than ", kNodesMax, " nodes"),
                         "give fewer nodes");
    }
    // Copies of one entry share nothing, so that they are counted as they are.
    entries_ += static_cast<int64_t>(node.labels.size() + node.compute.size());
    if (entries_ > kEntriesMax) {
      return map.ErrorAt("labels",
                         absl::StrCat("labels and rates of all nodes are more "
                                      "than ",
                                      kEntriesMax),
                         "give fewer of them");
    }
    if (!index_.emplace(node.name, index).second) {
      return map.ErrorAt("name", absl::StrCat("'", Printable(node.name),
                                              "' is given to two nodes"));
    }
    cluster_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status ReadNodes(const YamlMap& top) {
    const Yaml* nodes = top.Find("nodes");
    if (nodes == nullptr || nodes->kind != Yaml::Kind::kList ||
        nodes->list.empty()) {
      return top.ErrorAt("nodes", "must be a list of at least one node");
    }
    for (size_t i = 0; i < nodes->list.size(); ++i) {
      MILLRACE_ASSIGN_OR_RETURN(
          const YamlMap map,
          YamlMap::From(nodes->list[i], object_,
                        absl::StrCat(top.PathOf("nodes"), "[", i, "]")));
      MILLRACE_RETURN_IF_ERROR(
          map.OnlyKeys({"name", "count", "memory", "memory_bandwidth",
                        "compute", "nvme", "power_w", "labels"}));
      Node node;
      MILLRACE_ASSIGN_OR_RETURN(node.name, map.String("name"));
      MILLRACE_ASSIGN_OR_RETURN(const std::optional<int64_t> memory,
                                map.Size("memory"));
      if (!memory.has_value()) {
        return map.ErrorAt("memory", "is missing", "give memory");
      }
      node.memory_bytes = *memory;
      MILLRACE_ASSIGN_OR_RETURN(node.memory_bandwidth,
                                map.Rate("memory_bandwidth"));
      MILLRACE_ASSIGN_OR_RETURN(node.compute, ReadCompute(map, object_));
      MILLRACE_ASSIGN_OR_RETURN(node.power_w, map.NotNegative("power_w"));
      MILLRACE_ASSIGN_OR_RETURN(node.labels, ReadLabels(map));
      MILLRACE_RETURN_IF_ERROR(ReadNvme(map, object_, node));
      if (map.Find("count") == nullptr) {
        MILLRACE_RETURN_IF_ERROR(AddNode(map, std::move(node)));
        continue;
      }
      MILLRACE_ASSIGN_OR_RETURN(const int64_t count,
                                map.IntegerOr("count", 1, kNodesMax, 1));
      const std::string name = node.name;
      for (int64_t copy = 0; copy < count; ++copy) {
        node.name = absl::StrCat(name, "-", copy);
        MILLRACE_RETURN_IF_ERROR(AddNode(map, node));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> NodeNamed(const YamlMap& map, const Yaml& value) {
    const auto found = index_.find(value.scalar);
    if (value.kind != Yaml::Kind::kScalar || found == index_.end()) {
      return map.ErrorAt(
          "between", absl::StrCat("'", Printable(value.scalar), "' is no node"),
          "name two nodes, copies as a-0");
    }
    return found->second;
  }

  absl::Status ReadLinks(const YamlMap& top) {
    const Yaml* links = top.Find("links");
    if (links == nullptr) {
      return absl::OkStatus();
    }
    if (links->kind != Yaml::Kind::kList) {
      return top.ErrorAt("links", "must be a list");
    }
    for (size_t i = 0; i < links->list.size(); ++i) {
      MILLRACE_ASSIGN_OR_RETURN(
          const YamlMap map,
          YamlMap::From(links->list[i], object_,
                        absl::StrCat(top.PathOf("links"), "[", i, "]")));
      MILLRACE_RETURN_IF_ERROR(
          map.OnlyKeys({"between", "bandwidth", "latency"}));
      const Yaml* between = map.Find("between");
      if (between == nullptr || between->kind != Yaml::Kind::kList ||
          between->list.size() != 2) {
        return map.ErrorAt("between", "must be a list of two nodes");
      }
      NodePairLink link;
      MILLRACE_ASSIGN_OR_RETURN(link.node_a, NodeNamed(map, between->list[0]));
      MILLRACE_ASSIGN_OR_RETURN(link.node_b, NodeNamed(map, between->list[1]));
      if (link.node_a == link.node_b) {
        return map.ErrorAt("between", "must be two different nodes");
      }
      if (!pairs_.insert(std::minmax(link.node_a, link.node_b)).second) {
        return map.ErrorAt("between", "is a link that is given twice",
                           "keep one of them");
      }
      MILLRACE_ASSIGN_OR_RETURN(link.link, ReadLink(map));
      cluster_.links.push_back(link);
    }
    return absl::OkStatus();
  }

  absl::Status ReadConstraints(const YamlMap& top) {
    const Yaml* list = top.Find("constraints");
    if (list == nullptr) {
      return absl::OkStatus();
    }
    if (list->kind != Yaml::Kind::kList) {
      return top.ErrorAt("constraints", "must be a list");
    }
    for (size_t i = 0; i < list->list.size(); ++i) {
      MILLRACE_ASSIGN_OR_RETURN(
          const YamlMap map,
          YamlMap::From(list->list[i], object_,
                        absl::StrCat(top.PathOf("constraints"), "[", i, "]")));
      MILLRACE_RETURN_IF_ERROR(map.OnlyKeys({"layers", "labels", "spare"}));
      MILLRACE_ASSIGN_OR_RETURN(Constraint constraint, ReadConstraint(map));
      cluster_.constraints.push_back(std::move(constraint));
    }
    return absl::OkStatus();
  }

  // {layers: [0, 3], labels: {rack: r1}} or {spare: 1}.
  static absl::StatusOr<Constraint> ReadConstraint(const YamlMap& map) {
    Constraint constraint;
    const Yaml* layers = map.Find("layers");
    const bool labels = map.Find("labels") != nullptr;
    if (map.Find("spare") != nullptr) {
      if (layers != nullptr || labels) {
        return map.ErrorAt("spare", "stands beside layers or labels",
                           "make it a constraint of its own");
      }
      MILLRACE_ASSIGN_OR_RETURN(constraint.spare_nodes,
                                map.IntegerOr("spare", 0, kNodesMax, 0));
      return constraint;
    }
    if (layers == nullptr || !labels) {
      return map.ErrorAt(layers == nullptr ? "layers" : "labels", "is missing",
                         "give layers with labels, or spare");
    }
    constexpr const char* kHint =
        "write it as [0, 3], first and last layer, both included";
    if (layers->kind != Yaml::Kind::kList || layers->list.size() != 2) {
      return map.ErrorAt("layers", "must be a first and a last layer", kHint);
    }
    int64_t range[2] = {0, 0};
    for (size_t i = 0; i < 2; ++i) {
      const Yaml& value = layers->list[i];
      if (value.kind != Yaml::Kind::kScalar ||
          !absl::SimpleAtoi(value.scalar, &range[i]) ||
          range[i] < (i == 0 ? 0 : range[0])) {
        return map.ErrorAt(absl::StrCat("layers[", i, "]"),
                           "must be a layer, counted from 0, the last not "
                           "before the first",
                           kHint);
      }
    }
    constraint.first_layer = range[0];
    constraint.last_layer = range[1];
    MILLRACE_ASSIGN_OR_RETURN(constraint.labels, ReadLabels(map));
    return constraint;
  }

  const std::string object_;
  Cluster cluster_;
  NodeIndex index_;
  int64_t entries_ = 0;  // labels and rates of all nodes
  absl::flat_hash_set<std::pair<int64_t, int64_t>> pairs_;
};

}  // namespace

absl::StatusOr<Cluster> ParseCluster(absl::string_view text,
                                     absl::string_view object) {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml document, ParseYaml(text, object));
  return ReadCluster(document, object, "");
}

absl::StatusOr<Cluster> ReadCluster(const Yaml& document,
                                    absl::string_view object,
                                    absl::string_view path) {
  return ClusterReader(object).Read(document, path);
}

}  // namespace millrace::planner
