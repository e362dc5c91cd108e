#include "planner/cluster_codec.h"

#include <string>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::planner {
namespace {

using ::testing::HasSubstr;

// The same cluster in both languages is the same plain values.
TEST(ClusterCodec, ReadsYamlAndJson) {
  const char* yaml = R"(
version: 1
nodes:
  - {name: a, memory: 44GB, memory_bandwidth: 200GB/s,
     compute: {default: 4e12, q4_0: 9e12}, nvme: {bandwidth: 3GB/s, space: 2TB},
     power_w: 350, labels: {rack: r1}}
  - {name: b, count: 2, memory: 1.5GiB}
link_default: {bandwidth: 25Gbit/s, latency: 30us}
links:
  - {between: [a, b-1], bandwidth: 100Gbit/s, latency: 5us}
reserve: 1GiB
constraints: [{spare: 1}]
)";
  const char* json = R"({"version": 1, "nodes": [
    {"name": "a", "memory": 44000000000, "memory_bandwidth": 2e11,
     "compute": {"default": 4e12, "q4_0": 9e12},
     "nvme": {"bandwidth": "3GB/s", "space": "2TB"}, "power_w": 350,
     "labels": {"rack": "r1"}},
    {"name": "b", "count": 2, "memory": "1.5GiB"}],
    "link_default": {"bandwidth": "25Gbit/s", "latency": 0.00003},
    "links": [{"between": ["a", "b-1"], "bandwidth": "100Gbit/s",
               "latency": "5us"}],
    "reserve": "1GiB", "constraints": [{"spare": 1}]})";
  for (const char* text : {yaml, json}) {
    const auto cluster = ParseCluster(text, "c");
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    ASSERT_EQ(cluster->nodes.size(), 3u);
    EXPECT_EQ(cluster->nodes[0].memory_bytes, 44'000'000'000);
    EXPECT_EQ(cluster->nodes[0].memory_bandwidth, 2e11);
    EXPECT_EQ(cluster->nodes[0].ComputeRate("q4_0"), 9e12);
    EXPECT_EQ(cluster->nodes[0].ComputeRate("bf16"), 4e12);
    EXPECT_EQ(cluster->nodes[0].nvme_bandwidth, 3e9);
    EXPECT_EQ(cluster->nodes[0].nvme_bytes, 2'000'000'000'000);
    EXPECT_EQ(cluster->nodes[2].name, "b-1");
    EXPECT_EQ(cluster->nodes[2].memory_bytes, int64_t{3} << 29);
    EXPECT_FALSE(cluster->nodes[2].ComputeRate("bf16").has_value());
    ASSERT_EQ(cluster->links.size(), 1u);
    EXPECT_EQ(cluster->links[0].node_b, 2);
    EXPECT_EQ(cluster->links[0].link.bandwidth, 12.5e9);
    EXPECT_EQ(cluster->link_default.latency_s, 3e-5);
    EXPECT_EQ(cluster->reserve_bytes, int64_t{1} << 30);
    EXPECT_EQ(cluster->constraints[0].spare_nodes, 1);
  }
}

struct Refusal {
  const char* text;
  const char* names;  // what the error must hold
};

// Each of these is damaged in one place; the error names the place.
TEST(ClusterCodec, RefusesByName) {
  const Refusal refusals[] = {
      {"", "map"},
      {"[1, 2]", "map"},
      {"{version: 1", "neither JSON nor YAML"},
      {"{version: 2, nodes: [{name: a, memory: 1}]}", "version"},
      {"{nodes: [{name: a, memory: 1}]}", "version"},
      {"{version: 1}", "nodes"},
      {"{version: 1, nodes: []}", "nodes"},
      {"{version: 1, nodes: [{name: a}]}", "nodes[0].memory"},
      {"{version: 1, nodes: [{memory: 1}]}", "nodes[0].name"},
      {"{version: 1, nodes: [{name: a, memory: -5}]}", "nodes[0].memory"},
      {"{version: 1, nodes: [{name: a, memory: 1e300}]}", "nodes[0].memory"},
      {"{version: 1, nodes: [{name: a, memory: 1, memory: 2}]}",
       "'memory' is given twice"},
      {"{version: 1, nodes: [{name: a, memory: 1, speed: 2}]}",
       "nodes[0].speed"},
      {"{version: 1, nodes: [{name: a, memory: 1}, {name: a, memory: 1}]}",
       "'a' is given to two nodes"},
      {"{version: 1, nodes: [{name: a, memory: 1, memory_bandwidth: 0}]}",
       "nodes[0].memory_bandwidth"},
      {"{version: 1, nodes: [{name: a, memory: 1, compute: 0}]}",
       "nodes[0].compute"},
      {"{version: 1, nodes: [{name: a, memory: 1, compute: 1e999}]}",
       "nodes[0].compute"},
      {"{version: 1, nodes: [{name: a, count: 100001, memory: 1}]}",
       "nodes[0].count"},
      {"{version: 1, nodes: [{name: a, count: 0, memory: 1}]}",
       "nodes[0].count"},
      {"{version: 1, nodes: [{name: a, memory: 1}], links: [{between: [a, "
       "z]}]}",
       "'z' is no node"},
      {"{version: 1, nodes: [{name: a, memory: 1}], links: [{between: [a, "
       "a]}]}",
       "links[0].between"},
      {"{version: 1, nodes: [{name: a, memory: 1}], link_default: {latency: "
       "-1}}",
       "link_default.latency"},
      {"{version: 1, nodes: [{name: a, memory: 1}], constraints: [{layers: [0, "
       "1]}]}",
       "constraints[0].labels"},
      {"{version: 1, nodes: [{name: a, memory: 1}], constraints: [{layers: [3, "
       "1], labels: {r: x}}]}",
       "constraints[0].layers[1]"},
      {"{version: 1, nodes: [{name: a, memory: 1}, {name: b, memory: 1}], "
       "links: [{between: [a, b]}, {between: [b, a]}]}",
       "links[1].between"},
      {"{version: 1, nodes: [{name: a, memory: 1}], constraints: [{spare: 1, "
       "labels: {r: x}}]}",
       "constraints[0].spare"},
      {"{version: 1, nodes: [{name: a, memory: 1}], extra: 1}", "extra"},
  };
  for (const Refusal& refusal : refusals) {
    const auto cluster = ParseCluster(refusal.text, "c.yaml");
    ASSERT_FALSE(cluster.ok()) << refusal.text;
    EXPECT_EQ(ExitCodeOf(cluster.status()), 4) << refusal.text;
    EXPECT_THAT(std::string(cluster.status().message()),
                HasSubstr(refusal.names))
        << refusal.text;
  }
}

// Aliases of aliases would make 10^9 values; they are counted and refused.
TEST(ClusterCodec, RefusesMultiplyingAliases) {
  std::string text = "version: 1\nnodes: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "k" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) {
      text += (j > 0 ? ", " : "") + before;
    }
    text += "]\n";
  }
  const auto cluster = ParseCluster(text, "bomb.yaml");
  ASSERT_FALSE(cluster.ok());
  EXPECT_THAT(std::string(cluster.status().message()), HasSubstr("too many"));
}

TEST(ClusterCodec, RefusesWhatItWouldNotRead) {
  const std::string good = "version: 1\nnodes: [{name: a, memory: 1GB}]\n";
  ASSERT_TRUE(ParseCluster(good, "nodes.yaml").ok());
  for (const auto& [text, why] :
       std::vector<std::pair<std::string, std::string>>{
           {good + "---\nx: 1\n", "more behind the end"},
           {R"({"version": 1, "nodes": [{"name": "a", "memory": 1}]},,,rest)",
            "more behind the end"},
           {"version: 1\nnodes: [{name: \"a\xe9\", memory: 1GB}]\n",
            "no UTF-8"}}) {
    const auto cluster = ParseCluster(text, "nodes.yaml");
    ASSERT_FALSE(cluster.ok()) << text;
    EXPECT_THAT(std::string(cluster.status().message()), HasSubstr(why));
  }
}

// Millions of short values take YAML's reader long and much memory.
TEST(ClusterCodec, RefusesMillionsOfValuesBeforeTheyAreRead) {
  std::string text = "version: 1\nnodes: [";
  for (int i = 0; i < 3'000'000; ++i) {
    text += "1,";
  }
  const auto cluster = ParseCluster(text + "]", "values.yaml");
  ASSERT_FALSE(cluster.ok());
  EXPECT_THAT(std::string(cluster.status().message()),
              HasSubstr("more values than are read as YAML"));
}

}  // namespace
}  // namespace millrace::planner
