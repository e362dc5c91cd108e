// What `probe` prints is read by the planner as it was measured; provoked by
// sizes and rates with many digits, and names that YAML reads otherwise.
#include "cli/bench/node_entry.h"

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "boost/json/array.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/cluster_codec.h"

namespace millrace::cli {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Optional;

NodeEntry Entry() {
  return {.name = "big-1",
          .memory_bytes = 23'456'789'012,
          .memory_bandwidth = 23'456'789'012.5,
          .compute = {{"q8_0", 8e11}, {"q4_0", 1.23456e12}, {"f32", 2e11}}};
}

TEST(NodeEntryTest, ThePlannerReadsTheText) {
  const auto cluster = planner::ParseCluster(
      absl::StrCat("version: 1\nnodes:\n", NodeYaml(Entry())), "test");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_EQ(cluster->nodes.size(), 1u);
  const planner::Node& node = cluster->nodes[0];
  EXPECT_EQ(node.name, "big-1");
  EXPECT_EQ(node.memory_bytes, 23'456'000'000);
  EXPECT_THAT(node.memory_bandwidth, Optional(DoubleNear(23.46e9, 1)));
  EXPECT_EQ(node.compute, 8e11);
}

TEST(NodeEntryTest, ThePlannerReadsTheJson) {
  const boost::json::object file = {
      {"version", 1}, {"nodes", boost::json::array{NodeJson(Entry())}}};
  const auto cluster = planner::ParseCluster(WriteJson(file), "test");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->nodes[0].memory_bytes, 23'456'789'012);
  EXPECT_EQ(cluster->nodes[0].memory_bandwidth, 23'456'789'012.5);
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
