#include "planner/plan_codec.h"

#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "planner/inputs_writer.h"
#include "planner/plan_names.h"

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

json::array RouteJson(const Plan& plan, const Cluster& cluster) {
  json::array route;
  for (const RouteEntry& entry : plan.route) {
    route.push_back({{"node", NodeName(cluster, entry.node)},
                     {"first_layer", entry.first_layer},
                     {"last_layer", entry.last_layer}});
  }
  return route;
}

json::array StagesJson(const Plan& plan, const Cluster& cluster,
                       bool of_real_model) {
  json::array stages;
  for (const PlanStage& stage : plan.stages) {
    json::object out = {
        {"node", NodeName(cluster, stage.node)},
        {"weights_bytes", stage.weights_bytes},
        {"scratch_bytes", stage.scratch_bytes},
        {"kv_bytes_per_token", stage.kv_bytes_per_token},
        {"state_bytes_per_sequence", stage.state_bytes_per_sequence},
        {"free_bytes", stage.free_bytes},
        {"segment_s", OrNull(stage.segment_s)}};
    if (of_real_model) {
      out["kv_bytes"] = stage.kv_bytes;
      out["resident_bytes"] = stage.resident_bytes;
    }
    if (stage.streamed.has_value()) {
      out["experts"] = stage.streamed->experts;
      out["experts_held"] = stage.streamed->experts_held;
      out["hit_rate"] = stage.streamed->hit_share;
      out["read_bytes"] = OrNull(stage.streamed->read_bytes);
      out["read_s"] = OrNull(stage.streamed->read_s);
    }
    stages.push_back(std::move(out));
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

// Read from the files, or sums of that, is `given`; what was computed from it
// or chosen is `estimated`. A cluster file does not say what was measured.
json::object Provenance(bool streamed) {
  json::object words;
  for (const char* key :
       {"stages.weights_bytes", "stages.kv_bytes_per_token",
        "stages.state_bytes_per_sequence", "concurrency.context",
        "inputs.cluster", "inputs.costs", "inputs.options"}) {
    words[key] = "given";
  }
  for (const char* key : {"nodes_used",
                          "route.first_layer",
                          "route.last_layer",
                          "stages.scratch_bytes",
                          "stages.free_bytes",
                          "stages.segment_s",
                          "stages.kv_bytes",
                          "stages.resident_bytes",
                          "concurrency.sequences",
                          "cycle_s",
                          "loop_s",
                          "microbatches",
                          "rows",
                          "tokens_per_s",
                          "tokens_per_joule",
                          "tpot_s",
                          "ttft_s",
                          "bounds.cycle_s",
                          "bounds.tokens_per_s",
                          "bounds.sequences",
                          "bounds.nodes_used",
                          "bounds.gap",
                          "advice.effect"}) {
    words[key] = "estimated";
  }
  if (streamed) {
    // What is resident was chosen.
    words["stages.weights_bytes"] = "estimated";
    words["stages.experts"] = "given";
    for (const char* key : {"stages.experts_held", "stages.hit_rate",
                            "stages.read_bytes", "stages.read_s"}) {
      words[key] = "estimated";
    }
  }
  return words;
}

json::object OptionsJson(const PlanOptions& options) {
  json::array contexts;
  for (const int64_t context : options.contexts) {
    contexts.push_back(context);
  }
  return {{"objective", NameOf(options.objective)},
          {"placement", NameOf(options.placement)},
          {"contexts", std::move(contexts)},
          {"concurrency", OrNull(options.concurrency)},
          {"prompt_len", OrNull(options.prompt_len)},
          {"output_len", OrNull(options.output_len)},
          {"chunk", OrNull(options.chunk)}};
}

}  // namespace

Json PlanToJson(const Plan& plan, const ModelCosts& costs,
                const Cluster& cluster, const PlanOptions& options) {
  json::object out;
  out["version"] = 1;
  out["model"] = {
      {"name", costs.name},
      {"digest", costs.digest.empty() ? Json(nullptr)
                                      : Json(json::string(costs.digest))}};
  out["fits"] = plan.fits;
  out["verdict"] = plan.verdict;
  out["objective"] = NameOf(plan.objective);
  out["placement"] = NameOf(plan.placement);
  out["nodes_used"] = plan.stages.size();
  out["route"] = RouteJson(plan, cluster);
  out["stages"] = StagesJson(plan, cluster, !costs.digest.empty());
  out["binding"] = {{"kind", NameOf(plan.binding.kind)},
                    {"node", NodeName(cluster, plan.binding.node)}};
  out["concurrency"] = ConcurrencyJson(plan, cluster);
  out["cycle_s"] = OrNull(plan.cycle_s);
  out["loop_s"] = OrNull(plan.loop_s);
  out["microbatches"] = OrNull(plan.microbatches);
  out["rows"] = OrNull(plan.rows);
  out["tokens_per_s"] = OrNull(plan.tokens_per_s);
  out["tokens_per_joule"] = OrNull(plan.tokens_per_joule);
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
  json::array notes;
  for (const std::string& note : plan.notes) {
    notes.push_back(json::string(note));
  }
  out["notes"] = std::move(notes);
  out["provenance"] = Provenance(plan.placement == PlacementKind::kStreamed);
  out["inputs"] = {{"cluster", ClusterToJson(cluster)},
                   {"costs", CostsToJson(costs)},
                   {"options", OptionsJson(options)}};
  return out;
}

}  // namespace millrace::planner
