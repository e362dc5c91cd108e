// Plan files as `check` reads them: nodes, memory and links of the route, and
// what is no such file is refused by name.
#include "cli/check/checked_plan.h"

#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kPlan[] = R"({"version": 1, "fits": true,
  "model": {"name": "m", "digest": "abc", "path": "/m.gguf"},
  "route": [{"node": "a"}, {"node": "b"}, {"node": "a"}, {"node": "c"}],
  "stages": [{"node": "a", "resident_bytes": 7},
             {"node": "b", "resident_bytes": 8},
             {"node": "c", "resident_bytes": 9}],
  "inputs": {"cluster": {"version": 1,
    "nodes": [{"name": "a", "memory": 1}, {"name": "b", "memory": 1},
              {"name": "c", "memory": 1}],
    "link_default": {"bandwidth": 5e9, "latency": 1e-4},
    "links": [{"between": ["a", "c"], "bandwidth": 2e9, "latency": 2e-4}]}}})";

TEST(CheckedPlanTest, EveryPairOnceWithWhatThePlanExpects) {
  const absl::StatusOr<CheckedPlan> plan = ReadCheckedPlan(kPlan, "p");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->model_digest, "abc");
  EXPECT_EQ(plan->model_path, "/m.gguf");
  ASSERT_EQ(plan->stages.size(), 3u);
  EXPECT_EQ(plan->stages[1].node, "b");
  EXPECT_EQ(plan->stages[1].resident_bytes, 8);
  ASSERT_EQ(plan->hops.size(), 2u);  // a - b is met twice
  EXPECT_EQ(plan->hops[0].from, "a");
  EXPECT_EQ(plan->hops[0].to, "b");
  EXPECT_EQ(plan->hops[0].bandwidth, 5e9);
  EXPECT_EQ(plan->hops[1].to, "c");
  EXPECT_EQ(plan->hops[1].bandwidth, 2e9);
  EXPECT_EQ(plan->hops[1].latency_s, 2e-4);
}

TEST(CheckedPlanTest, WithoutInputsNothingIsExpected) {
  const std::string text =
      absl::StrReplaceAll(kPlan, {{"\"inputs\"", "\"others\""}});
  const absl::StatusOr<CheckedPlan> plan = ReadCheckedPlan(text, "p");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->hops[0].bandwidth, std::nullopt);
}

TEST(CheckedPlanTest, WhatIsNoPlanOfAModelIsRefused) {
  const std::pair<const char*, const char*> changes[] = {
      {"\"version\": 1, \"fits\"", "\"version\": 2, \"fits\""},
      {"\"fits\": true", "\"fits\": false"},
      {"\"digest\": \"abc\"", "\"digest\": null"},
      {"\"resident_bytes\": 7", "\"resident_bytes\": -1"},
      {"\"resident_bytes\": 7", "\"resident_bytes\": null"},
      {"{\"node\": \"b\", \"res", "{\"node\": \"a\", \"res"},
      {"[{\"node\": \"a\"}, {\"node\": \"b\"}", "[{\"node\": \"x\"}"},
      {"\"route\": [", "\"rout\": ["},
      {"\"bandwidth\": 2e9", "\"bandwidth\": -2e9"},
      {"{\"version\": 1, \"fits\"", "{\"version\": 1 \"fits\""}};
  for (const auto& [from, to] : changes) {
    const std::string text = absl::StrReplaceAll(kPlan, {{from, to}});
    ASSERT_NE(text, kPlan) << from;
    const absl::StatusOr<CheckedPlan> plan = ReadCheckedPlan(text, "p.json");
    ASSERT_FALSE(plan.ok()) << to;
    EXPECT_EQ(KindOf(plan.status()), ErrorKind::kInput) << plan.status();
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr("p.json"));
    EXPECT_FALSE(HintOf(plan.status()).empty()) << plan.status();
  }
}

}  // namespace
}  // namespace millrace::cli
