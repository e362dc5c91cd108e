#include "planner/cluster_codec.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "planner/yaml_reader.h"

namespace millrace::planner {
namespace {

using NodeIndex = absl::flat_hash_map<std::string, int64_t>;

absl::StatusOr<std::map<std::string, std::string>> ReadLabels(
    const YamlMap& map) {
  std::map<std::string, std::string> labels;
  const Yaml* value = map.Find("labels");
  if (value == nullptr) {
    return labels;
  }
  if (value->kind != Yaml::Kind::kMap) {
    return map.ErrorAt("labels", "must be a map of names to values");
  }
  for (size_t i = 0; i < value->keys.size(); ++i) {
    const std::string& key = value->keys[i];
    const Yaml& label = value->values[i];
    if (label.kind != Yaml::Kind::kScalar) {
      return map.ErrorAt(absl::StrCat("labels.", key), "must be a text");
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

  absl::StatusOr<Cluster> Read(const Yaml& document) {
    MILLRACE_ASSIGN_OR_RETURN(const YamlMap top,
                              YamlMap::From(document, object_, ""));
    MILLRACE_RETURN_IF_ERROR(top.OnlyKeys({"version", "nodes", "link_default",
                                           "links", "reserve", "constraints"}));
    MILLRACE_ASSIGN_OR_RETURN(const int64_t version,
                              top.IntegerOr("version", 0, 1'000'000, 0));
    if (version != 1) {
      return top.ErrorAt("version", "must be 1");
    }
    MILLRACE_RETURN_IF_ERROR(ReadNodes(top));
    if (const Yaml* value = top.Find("link_default"); value != nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(const YamlMap link,
                                YamlMap::From(*value, object_, "link_default"));
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
      return InputError(object_,
                        absl::StrCat("has more than ", kNodesMax, " nodes"));
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
      MILLRACE_ASSIGN_OR_RETURN(const YamlMap map,
                                YamlMap::From(nodes->list[i], object_,
                                              absl::StrCat("nodes[", i, "]")));
      MILLRACE_RETURN_IF_ERROR(
          map.OnlyKeys({"name", "count", "memory", "memory_bandwidth",
                        "compute", "nvme", "power_w", "labels"}));
      Node node;
      MILLRACE_ASSIGN_OR_RETURN(node.name, map.String("name"));
      MILLRACE_ASSIGN_OR_RETURN(const std::optional<int64_t> memory,
                                map.Size("memory"));
      if (!memory.has_value()) {
        return map.ErrorAt("memory", "is missing");
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
      return map.ErrorAt("between", absl::StrCat("'", Printable(value.scalar),
                                                 "' is no node"));
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
      MILLRACE_ASSIGN_OR_RETURN(const YamlMap map,
                                YamlMap::From(links->list[i], object_,
                                              absl::StrCat("links[", i, "]")));
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
                        absl::StrCat("constraints[", i, "]")));
      MILLRACE_RETURN_IF_ERROR(map.OnlyKeys({"layers", "labels", "spare"}));
      Constraint constraint;
      MILLRACE_ASSIGN_OR_RETURN(constraint.spare_nodes,
                                map.IntegerOr("spare", 0, kNodesMax, 0));
      MILLRACE_ASSIGN_OR_RETURN(constraint.labels, ReadLabels(map));
      if (map.Find("layers") != nullptr) {
        return map.ErrorAt("layers", "pinned layers are not in this version");
      }
      cluster_.constraints.push_back(std::move(constraint));
    }
    return absl::OkStatus();
  }

  const std::string object_;
  Cluster cluster_;
  NodeIndex index_;
};

}  // namespace

absl::StatusOr<Cluster> ParseCluster(absl::string_view text,
                                     absl::string_view object) {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml document, ParseYaml(text, object));
  return ClusterReader(object).Read(document);
}

}  // namespace millrace::planner
