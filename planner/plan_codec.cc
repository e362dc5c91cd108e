#include "planner/plan_codec.h"

#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "model/spec/model_costs.h"

namespace millrace::planner {
namespace {

namespace json = boost::json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json NodeName(const Cluster& cluster, const std::optional<int64_t>& node) {
  return node.has_value() ? Json(json::string(
                                cluster.nodes[static_cast<size_t>(*node)].name))
                          : Json(nullptr);
}

const char* NameOf(BindingKind kind) {
  switch (kind) {
    case BindingKind::kMemory:
      return "memory";
    case BindingKind::kTime:
      return "time";
    case BindingKind::kLink:
      return "link";
  }
  return "memory";
}

json::array RouteJson(const Plan& plan, const Cluster& cluster) {
  json::array route;
  for (const RouteEntry& entry : plan.route) {
    route.push_back({{"node", NodeName(cluster, entry.node)},
                     {"first_layer", entry.first_layer},
                     {"last_layer", entry.last_layer}});
  }
  return route;
}

json::array StagesJson(const Plan& plan, const Cluster& cluster) {
  json::array stages;
  for (const PlanStage& stage : plan.stages) {
    stages.push_back(
        {{"node", NodeName(cluster, stage.node)},
         {"weights_bytes", stage.weights_bytes},
         {"scratch_bytes", stage.scratch_bytes},
         {"kv_bytes_per_token", stage.kv_bytes_per_token},
         {"state_bytes_per_sequence", stage.state_bytes_per_sequence},
         {"free_bytes", stage.free_bytes},
         {"segment_s", OrNull(stage.segment_s)},
         {"kv_bytes", stage.kv_bytes},
         {"resident_bytes", stage.resident_bytes}});
  }
  return stages;
}

json::array ConcurrencyJson(const Plan& plan, const Cluster& cluster) {
  json::array list;
  for (const ContextConcurrency& entry : plan.concurrency) {
    list.push_back({{"context", entry.context},
                    {"sequences", OrNull(entry.sequences)},
                    {"binding_node", NodeName(cluster, entry.binding_node)}});
  }
  return list;
}

// Bandwidths and memory are given in the cluster file, bytes are known from the
// model's own files; times computed from the two are estimates.
json::object Provenance() {
  json::object words;
  for (const char* key :
       {"cycle_s", "loop_s", "microbatches", "tokens_per_s", "tpot_s", "ttft_s",
        "stages.segment_s", "stages.scratch_bytes", "stages.resident_bytes",
        "stages.free_bytes", "concurrency.sequences", "bounds.cycle_s",
        "bounds.tokens_per_s", "advice.effect"}) {
    words[key] = "estimated";
  }
  for (const char* key :
       {"stages.weights_bytes", "stages.kv_bytes_per_token",
        "stages.state_bytes_per_sequence", "stages.kv_bytes"}) {
    words[key] = "given";
  }
  return words;
}

json::object ClusterJson(const Cluster& cluster) {
  json::array nodes;
  for (const Node& node : cluster.nodes) {
    json::object entry;
    entry["name"] = node.name;
    entry["memory"] = node.memory_bytes;
    if (node.memory_bandwidth.has_value()) {
      entry["memory_bandwidth"] = *node.memory_bandwidth;
    }
    if (node.compute.has_value()) {
      entry["compute"] = {{"default", *node.compute}};
    }
    if (node.power_w.has_value()) {
      entry["power_w"] = *node.power_w;
    }
    nodes.push_back(entry);
  }
  json::object out;
  out["version"] = 1;
  out["nodes"] = nodes;
  out["reserve"] = cluster.reserve_bytes;
  if (cluster.link_default.bandwidth.has_value()) {
    out["link_default"] = {{"bandwidth", *cluster.link_default.bandwidth},
                           {"latency", OrNull(cluster.link_default.latency_s)}};
  }
  return out;
}

json::object CostsJson(const model::ModelSpec& spec) {
  json::array layers;
  for (const model::LayerSpec& layer : spec.layers) {
    const model::PartCosts costs = model::CostsOf(layer);
    layers.push_back(
        {{"kind", model::KindOf(layer)},
         {"weights", costs.weights_bytes()},
         {"kv_per_token", model::KvBytesPerToken(layer, model::kKv16Bit)},
         {"flops_per_token", costs.operations_per_token},
         {"bytes_per_token", costs.read_bytes_per_token}});
  }
  const auto part = [](const model::PartCosts& costs) {
    return json::object{{"weights", costs.weights_bytes()},
                        {"flops_per_token", costs.operations_per_token},
                        {"bytes_per_token", costs.read_bytes_per_token}};
  };
  return json::object{{"version", 1},
                      {"name", spec.name},
                      {"hidden_bytes", spec.hidden_size * 4},
                      {"layers", layers},
                      {"first", part(model::EmbeddingCosts(spec))},
                      {"last", part(model::HeadCosts(spec))}};
}

}  // namespace

Json PlanToJson(const Plan& plan, const model::ModelSpec& spec,
                const Cluster& cluster) {
  json::object out;
  out["version"] = 1;
  out["model"] = {{"name", spec.name}, {"digest", spec.digest}};
  out["fits"] = plan.fits;
  out["verdict"] = plan.verdict;
  out["objective"] = "throughput";
  out["placement"] = "contiguous";
  out["nodes_used"] = plan.route.size();
  out["route"] = RouteJson(plan, cluster);
  out["stages"] = StagesJson(plan, cluster);
  out["binding"] = {{"kind", NameOf(plan.binding.kind)},
                    {"node", NodeName(cluster, plan.binding.node)}};
  out["concurrency"] = ConcurrencyJson(plan, cluster);
  out["cycle_s"] = OrNull(plan.cycle_s);
  out["loop_s"] = OrNull(plan.loop_s);
  out["microbatches"] = OrNull(plan.microbatches);
  out["tokens_per_s"] = OrNull(plan.tokens_per_s);
  out["tpot_s"] = OrNull(plan.tpot_s);
  out["ttft_s"] = OrNull(plan.ttft_s);
  out["bounds"] = {{"cycle_s", OrNull(plan.bounds.cycle_s)},
                   {"tokens_per_s", OrNull(plan.bounds.tokens_per_s)},
                   {"sequences", OrNull(plan.bounds.sequences)},
                   {"nodes_used", OrNull(plan.bounds.nodes_used)},
                   {"gap", OrNull(plan.bounds.gap)}};
  json::array advice;
  for (const Advice& entry : plan.advice) {
    advice.push_back({{"change", entry.change}, {"effect", entry.effect}});
  }
  out["advice"] = advice;
  out["provenance"] = Provenance();
  out["inputs"] = {{"cluster", ClusterJson(cluster)},
                   {"costs", CostsJson(spec)}};
  return out;
}

}  // namespace millrace::planner
