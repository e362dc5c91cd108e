// What `probe` prints is read by the planner as it was measured; provoked by
// sizes and rates with many digits, and names that YAML reads otherwise.
#include "cli/bench/node_entry.h"

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "boost/json/value.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/cluster_codec.h"

namespace millrace::cli {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Optional;

Spread Of(double median) {
  return {
      .median = median, .low = median * 0.9, .high = median * 1.1, .rounds = 3};
}

NodeEntry Entry() {
  return {.name = "big-1",
          .memory_bytes = 23'456'789'012,
          .memory_bandwidth = Of(23'456'789'012.5),
          .compute = {{"q8_0", Of(8e11), Of(2e12)},
                      {"q4_0", Of(1.23456e12), Of(2e12)},
                      {"f32", Of(2e11), Of(2e12)}},
          .nvme = NvmeEntry{Of(3.21e9), 1'234'000'000'000}};
}

LinkEntry Link() {
  return {.from = "big-1",
          .to = "b",
          .bandwidth_out = Of(3e9),
          .bandwidth_in = Of(2.5e9),
          .latency_s = Of(31e-6)};
}

TEST(NodeEntryTest, ThePlannerReadsTheText) {
  const auto cluster = planner::ParseCluster(
      absl::StrCat("version: 1\nnodes:\n", NodeYaml(Entry()),
                   "  - {name: b, memory: 1}\nlinks:\n", LinkYaml(Link())),
      "test");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_EQ(cluster->nodes.size(), 2u);
  ASSERT_EQ(cluster->links.size(), 1u);
  // The slower direction.
  EXPECT_THAT(cluster->links[0].link.bandwidth, Optional(DoubleNear(2.5e9, 1)));
  EXPECT_THAT(cluster->links[0].link.latency_s,
              Optional(DoubleNear(31e-6, 1e-9)));
  const planner::Node& node = cluster->nodes[0];
  EXPECT_EQ(node.name, "big-1");
  EXPECT_EQ(node.memory_bytes, 23'456'000'000);
  EXPECT_THAT(node.memory_bandwidth, Optional(DoubleNear(23.46e9, 1)));
  EXPECT_EQ(node.ComputeRate(planner::kComputeDefault), 8e11);
}

TEST(NodeEntryTest, ThePlannerReadsTheJson) {
  const boost::json::object file = {
      {"version", 1},
      {"nodes", {NodeJson(Entry()), {{"name", "b"}, {"memory", 1}}}},
      {"links", {LinkJson(Link())}}};
  const auto cluster = planner::ParseCluster(WriteJson(file), "test");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->nodes[0].memory_bytes, 23'456'789'012);
  EXPECT_EQ(cluster->nodes[0].memory_bandwidth, 23'456'789'012.5);
}

TEST(NodeEntryTest, SpreadsStandBehindNumbersAndAlone) {
  EXPECT_NE(NodeYaml(Entry()).find("q8_0: 8e+11  # +- 10 % over 3 rounds\n"),
            std::string::npos);
  const boost::json::object spread = NodeSpreadJson(Entry());
  const boost::json::value& q8 = spread.at("compute").at("q8_0");
  EXPECT_EQ(q8.at("median").as_double(), 8e11);
  EXPECT_EQ(q8.at("low").as_double(), 8e11 * 0.9);
  EXPECT_EQ(spread.at("prompt_compute").at("q8_0").at("median").as_double(),
            2e12);
}

TEST(NodeEntryTest, NamesAreWhatYamlReadsAsText) {
  EXPECT_EQ(NodeName("big-1.rack_2"), "big-1.rack_2");
  EXPECT_EQ(NodeName("a: b #"), "a--b--");
  EXPECT_EQ(NodeName("-a"), "node-a");
  EXPECT_EQ(NodeName(""), "node");
}

TEST(NodeEntryTest, OneLineAnOperation) {
  const std::vector<kernels::KernelChoice> choices = {
      {"matmul", "f32", "fast", "avx2"},
      {"matmul", "bf16", "fast", "bf"},
      {"matmul", "q8_0", "fast", "avx2"},
      {"matmul", "f32", "exact", "avx2"},
      {"rope", "", "", "scalar"}};
  EXPECT_THAT(
      KernelLines(choices),
      ElementsAre("matmul fast       avx2: f32, q8_0; bf: bf16",
                  "matmul exact      avx2: f32", "rope              scalar"));
}

}  // namespace
}  // namespace millrace::cli
