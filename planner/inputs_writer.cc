#include "planner/inputs_writer.h"

#include <cmath>
#include <optional>
#include <string>

#include "boost/json/array.hpp"

namespace millrace::planner {
namespace {

namespace json = boost::json;

// A whole number where it is one: shorter, and readable by every JSON reader.
json::value Number(double value) {
  constexpr double kWholeMax = 9007199254740992;  // 2^53
  return value >= 0 && value < kWholeMax && value == std::floor(value)
             ? json::value(static_cast<int64_t>(value))
             : json::value(value);
}

void PutIfKnown(const char* key, const std::optional<double>& value,
                json::object& out) {
  if (value.has_value()) {
    out[key] = Number(*value);
  }
}

json::object LinkJson(const Link& link) {
  json::object out;
  PutIfKnown("bandwidth", link.bandwidth, out);
  PutIfKnown("latency", link.latency_s, out);
  return out;
}

json::object LabelsJson(const std::map<std::string, std::string>& labels) {
  json::object out;
  for (const auto& [key, value] : labels) {
    out[key] = value;
  }
  return out;
}

json::object NodeJson(const Node& node) {
  json::object out;
  out["name"] = node.name;
  out["memory"] = node.memory_bytes;
  PutIfKnown("memory_bandwidth", node.memory_bandwidth, out);
  if (!node.compute.empty()) {
    json::object rates;
    for (const auto& [format, rate] : node.compute) {
      rates[format] = Number(rate);
    }
    out["compute"] = std::move(rates);
  }
  json::object nvme;
  PutIfKnown("bandwidth", node.nvme_bandwidth, nvme);
  if (node.nvme_bytes.has_value()) {
    nvme["space"] = *node.nvme_bytes;
  }
  if (!nvme.empty()) {
    out["nvme"] = std::move(nvme);
  }
  PutIfKnown("power_w", node.power_w, out);
  if (!node.labels.empty()) {
    out["labels"] = LabelsJson(node.labels);
  }
  return out;
}

json::array ConstraintsJson(const Cluster& cluster) {
  json::array list;
  for (const Constraint& constraint : cluster.constraints) {
    if (constraint.first_layer.has_value()) {
      list.push_back(json::object{
          {"layers", {*constraint.first_layer, *constraint.last_layer}},
          {"labels", LabelsJson(constraint.labels)}});
    } else {
      list.push_back(json::object{{"spare", constraint.spare_nodes}});
    }
  }
  return list;
}

void PutUnless(const char* key, int64_t value, int64_t otherwise,
               json::object& out) {
  if (value != otherwise) {
    out[key] = value;
  }
}

json::object LayerJson(const LayerCost& layer, int64_t repeat) {
  json::object out;
  PutUnless("repeat", repeat, 1, out);
  if (!layer.kind.empty()) {
    out["kind"] = layer.kind;
  }
  out["weights"] = layer.weights_bytes;
  PutUnless("kv_per_token", layer.kv_per_token, 0, out);
  PutUnless("kv_positions_max", layer.kv_positions_max, 0, out);
  PutUnless("state_per_sequence", layer.state_per_sequence, 0, out);
  out["flops_per_token"] = Number(layer.flops_per_token);
  out["bytes_per_token"] = Number(layer.bytes_per_token);
  if (layer.experts.count > 0) {
    out["experts"] = {{"count", layer.experts.count},
                      {"used", layer.experts.used},
                      {"bytes_each", Number(layer.experts.bytes_each)}};
  }
  PutUnless("vectors", layer.vectors, 1, out);
  if (!layer.format.empty()) {
    out["format"] = layer.format;
  }
  return out;
}

json::object EndJson(const EndCost& end) {
  return {{"weights", end.weights_bytes},
          {"flops_per_token", Number(end.flops_per_token)},
          {"bytes_per_token", Number(end.bytes_per_token)}};
}

}  // namespace

json::object ClusterToJson(const Cluster& cluster) {
  json::array nodes;
  for (const Node& node : cluster.nodes) {
    nodes.push_back(NodeJson(node));
  }
  json::object out;
  out["version"] = 1;
  out["nodes"] = std::move(nodes);
  if (json::object link = LinkJson(cluster.link_default); !link.empty()) {
    out["link_default"] = std::move(link);
  }
  if (!cluster.links.empty()) {
    json::array links;
    for (const NodePairLink& pair : cluster.links) {
      json::object link = LinkJson(pair.link);
      const auto name = [&](int64_t node) {
        return json::value(
            json::string(cluster.nodes[static_cast<size_t>(node)].name));
      };
      link["between"] = json::array{name(pair.node_a), name(pair.node_b)};
      links.push_back(std::move(link));
    }
    out["links"] = std::move(links);
  }
  out["reserve"] = cluster.reserve_bytes;
  if (!cluster.constraints.empty()) {
    out["constraints"] = ConstraintsJson(cluster);
  }
  return out;
}

json::object CostsToJson(const ModelCosts& costs) {
  json::array layers;
  for (size_t i = 0; i < costs.layers.size();) {
    size_t end = i + 1;
    while (end < costs.layers.size() && costs.layers[end] == costs.layers[i]) {
      ++end;
    }
    layers.push_back(LayerJson(costs.layers[i], static_cast<int64_t>(end - i)));
    i = end;
  }
  json::object out;
  out["version"] = 1;
  if (!costs.name.empty()) {
    out["name"] = costs.name;
  }
  if (!costs.digest.empty()) {
    out["digest"] = costs.digest;
  }
  out["hidden_bytes"] = costs.hidden_bytes;
  out["layers"] = std::move(layers);
  out["first"] = EndJson(costs.first);
  out["last"] = EndJson(costs.last);
  PutUnless("shared_weights_bytes", costs.shared_weights_bytes, 0, out);
  PutUnless("kv_block_positions", costs.kv_block_positions, 1, out);
  return out;
}

}  // namespace millrace::planner
