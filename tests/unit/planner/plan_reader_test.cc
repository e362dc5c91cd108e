// A plan file gives back what the plan was made from, and the same numbers bit
// for bit; what was changed by hand is refused by name.
#include "planner/plan_reader.h"

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/inputs_writer.h"
#include "planner/plan_codec.h"
#include "planner/planner.h"

namespace millrace::planner {
namespace {

using ::testing::HasSubstr;

Cluster SomeNodes() {
  Cluster cluster;
  for (int i = 0; i < 3; ++i) {
    Node node;
    node.name = "node-" + std::to_string(i);
    node.memory_bytes = 4'000'000'000 + i;
    node.memory_bandwidth = 1e10 / 3 * (i + 1);
    node.compute = {{kComputeDefault, 1e12 / 7}, {"q8_0", 2e12}};
    node.nvme_bandwidth = 3e9;
    node.nvme_bytes = 5'000'000'000;
    node.power_w = 350.5;
    node.labels = {{"rack", "r" + std::to_string(i)}};
    cluster.nodes.push_back(node);
  }
  cluster.link_default = {1e9 / 3, 1e-5 / 3};
  cluster.links.push_back({0, 2, {5e8, 1.0 / 3}});
  cluster.links.push_back({1, 2, {std::nullopt, 2e-6}});
  cluster.reserve_bytes = 123;
  Constraint labels;
  labels.first_layer = 0;
  labels.last_layer = 1;
  labels.labels = {{"rack", "r0"}};
  Constraint spare;
  spare.spare_nodes = 1;
  cluster.constraints = {labels, spare};
  return cluster;
}

ModelCosts SomeModel() {
  ModelCosts costs;
  costs.name = "m";
  costs.digest = "sha256:1";
  costs.hidden_bytes = 4096;
  costs.kv_block_positions = 64;
  for (int i = 0; i < 6; ++i) {
    LayerCost layer;
    layer.weights_bytes = 1'000'000'000;
    layer.kv_per_token = 1000 + i / 3;
    layer.flops_per_token = 1e9 / 3;
    layer.bytes_per_token = 123'456'789;
    layer.experts = {64, 4, 1e7 / 3};
    layer.format = i < 3 ? "q8_0" : "";
    costs.layers.push_back(layer);
  }
  costs.last = {1'000'000, 1'000'000, 1e6};
  costs.shared_weights_bytes = 500'000;
  return costs;
}

// The least time needs a link that has a bandwidth.
PlanOptions SomeOptions() {
  PlanOptions options;
  options.objective = Objective::kConcurrency;
  options.contexts = {1000, 5000};
  options.concurrency = 5;
  options.prompt_len = 700;
  options.output_len = 300;
  options.chunk = 128;
  return options;
}

std::string SomePlan() {
  const ModelCosts costs = SomeModel();
  const Cluster cluster = SomeNodes();
  const PlanOptions options = SomeOptions();
  const auto plan =
      MakePlan({&costs, &cluster, &options, [](std::span<const LayerRun> runs) {
                  return 1'000'000 * runs.front().end;
                }});
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->fits) << plan->verdict;
  return WriteJson(PlanToJson(*plan, costs, cluster, options));
}

TEST(PlanReader, GivesBackWhatWasWritten) {
  const std::string text = SomePlan();
  const auto file = ParsePlan(text, "plan.json");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->costs, SomeModel());
  EXPECT_EQ(WriteJson(ClusterToJson(file->cluster)),
            WriteJson(ClusterToJson(SomeNodes())));
  EXPECT_EQ(file->options.contexts, SomeOptions().contexts);
  EXPECT_EQ(file->options.chunk, 128);
  EXPECT_GT(file->plan.stages.front().scratch_bytes, 0);
  // All numbers but bounds and advice, which are of the search.
  Plan plan = file->plan;
  const Json again =
      PlanToJson(plan, file->costs, file->cluster, file->options);
  const auto before = ParseJson(text, "plan.json");
  ASSERT_TRUE(before.ok());
  for (const char* key :
       {"model", "fits", "verdict", "objective", "placement", "nodes_used",
        "route", "stages", "binding", "concurrency", "cycle_s", "loop_s",
        "microbatches", "rows", "tokens_per_s", "tpot_s", "ttft_s", "inputs"}) {
    EXPECT_EQ(WriteJson(again.at(key)), WriteJson(before->at(key))) << key;
  }
}

TEST(PlanReader, PlansThatDoNotFitAreRead) {
  const ModelCosts costs = SomeModel();
  Cluster cluster = SomeNodes();
  cluster.nodes.resize(1);
  cluster.links.clear();
  cluster.constraints.clear();
  const PlanOptions options = SomeOptions();
  const auto plan = MakePlan({&costs, &cluster, &options});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_FALSE(plan->fits);
  const auto file =
      ParsePlan(WriteJson(PlanToJson(*plan, costs, cluster, options)), "p");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->plan.fits);
  EXPECT_TRUE(file->plan.route.empty());
}

TEST(PlanReader, RefusesByName) {
  struct Damage {
    const char* from;
    const char* to;
    const char* names;
  };
  const Damage damages[] = {
      {"{", "[", "neither JSON nor YAML"},
      {"\"version\":1,\"model\"", "\"version\":2,\"model\"", "version"},
      {"\"fits\":true", "\"fits\":7", "fits"},
      {"\"route\":[", "\"route\":[],\"x\":[", "route"},
      {"\"first_layer\":0", "\"first_layer\":1", "route[0].first_layer"},
      {"\"last_layer\":5", "\"last_layer\":4", "route"},
      {"\"last_layer\":5", "\"last_layer\":6", "].first_layer"},
      {"\"node\":\"node-0\",\"first", "\"node\":\"gone\",\"first",
       "route[0].node"},
      {"\"stages\":[", "\"stages\":[],\"y\":[", "stages"},
      {"\"inputs\":", "\"outputs\":", "inputs"},
      {"\"cluster\":", "\"clusters\":", "inputs.cluster"},
      {"\"memory\":4000000000", "\"memory\":-1",
       "inputs.cluster.nodes[0].memory"},
      {"\"memory\":4000000000", "\"memory\":1", "node-0"},
      {"\"weights\":1000000000", "\"weights\":1e300",
       "inputs.costs.layers[0].weights"},
      {"\"contexts\":[1000", "\"contexts\":[0", "inputs.options.contexts"},
      {"\"concurrency\":5", "\"concurrency\":-5", "inputs.options.concurrency"},
      {"\"objective\":\"concurrency\",\"placement\":\"auto\"",
       "\"objective\":\"beauty\",\"placement\":\"auto\"",
       "inputs.options.objective"},
  };
  const std::string text = SomePlan();
  for (const Damage& damage : damages) {
    std::string damaged = text;
    const size_t place = damaged.find(damage.from);
    ASSERT_NE(place, std::string::npos) << damage.from << "\n" << text;
    damaged.replace(place, std::string(damage.from).size(), damage.to);
    const auto file = ParsePlan(damaged, "plan.json");
    ASSERT_FALSE(file.ok()) << damage.to;
    EXPECT_EQ(ExitCodeOf(file.status()), 4) << damage.to;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(damage.names))
        << damage.to;
  }
}

}  // namespace
}  // namespace millrace::planner
