#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "planner/plan_numbers.h"
#include "planner/report/axis.h"
#include "planner/report/context_curves.h"
#include "planner/report/link_shares.h"
#include "planner/report/neighbor_groups.h"
#include "planner/report/page_text.h"
#include "planner/report/throughput_curve.h"

namespace millrace::planner::report {
namespace {

TEST(PageText, EscapedHasNoMarkup) {
  EXPECT_EQ(Escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(Escaped("größe 模型"), "größe 模型");
  // Not UTF-8: alone, cut short, overlong, a surrogate, too large.
  EXPECT_EQ(Escaped("\xFF"), "\uFFFD");
  EXPECT_EQ(Escaped("\xE2\x82"), "\uFFFD\uFFFD");
  EXPECT_EQ(Escaped("\xC0\xBC"), "\uFFFD\uFFFD");
  EXPECT_EQ(Escaped("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Escaped("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  // Controls and what turns the direction of text.
  EXPECT_EQ(Escaped(std::string("a\0b\n", 4)), "a\uFFFDb\uFFFD");
  EXPECT_EQ(Escaped("\u202Eevil"), "\uFFFDevil");
}

TEST(PageText, ShortenedCountsCharacters) {
  EXPECT_EQ(Shortened("abcd", 4), "abcd");
  EXPECT_EQ(Shortened("abcde", 4), "abc…");
  EXPECT_EQ(Shortened("模型模型模", 4), "模型模…");
}

TEST(PageText, NumbersForPeople) {
  EXPECT_EQ(CountText(1234567), "1,234,567");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(std::nullopt), "unknown");
  EXPECT_EQ(RateText(12345.4), "12,345");
  EXPECT_EQ(RateText(3.14159), "3.14");
  EXPECT_EQ(PercentText(0.5), "50 %");
}

TEST(Axis, TicksAreRoundAndReachTheEnd) {
  const Axis size = SizeAxis("memory", 43.2e9);
  EXPECT_EQ(size.label, "memory, GB");
  ASSERT_EQ(size.ticks.size(), 6);
  EXPECT_EQ(size.ticks[1].label, "10");
  EXPECT_EQ(size.high, 50e9);
  EXPECT_EQ(size.Position(25e9), 0.5);
  EXPECT_EQ(size.Position(90e9), 1);
  const Axis time = SecondsAxis("t", 0.0123);
  EXPECT_EQ(time.label, "t, ms");
  EXPECT_GE(time.high, 0.0123);
  const Axis tokens = BinaryAxis("tokens", 1024, 1 << 20);
  EXPECT_EQ(tokens.ticks.front().label, "1 Ki");
  EXPECT_EQ(tokens.ticks.back().label, "1 Mi");
  EXPECT_NEAR(tokens.Position(32 * 1024), 0.5, 1e-12);
  const Axis counts = DecimalAxis("sequences", 1, 1);
  EXPECT_GT(counts.high, counts.low);
}

TEST(NeighborGroups, FewAreAloneManyAreTogether) {
  const auto all = [](size_t, size_t) { return true; };
  const auto none = [](size_t, size_t) { return false; };
  EXPECT_EQ(GroupNeighbors(kShownSinglyMax, all).size(), kShownSinglyMax);
  EXPECT_EQ(GroupNeighbors(kShownSinglyMax + 1, all).size(), 1);
  EXPECT_EQ(GroupNeighbors(kGroupsMax, none).size(), kGroupsMax);
  const auto ranges = GroupNeighbors(kGroupsMax * 3 + 1, none);
  EXPECT_LE(ranges.size(), kGroupsMax);
  EXPECT_FALSE(ranges.front().alike);
  EXPECT_EQ(ranges.back().end, kGroupsMax * 3 + 1);
  EXPECT_TRUE(GroupNeighbors(0, all).empty());
}

// Two layers with KV, two without.
ModelCosts FourLayers() {
  ModelCosts costs;
  costs.hidden_bytes = 1'000'000;
  for (int64_t i = 0; i < 4; ++i) {
    LayerCost layer;
    layer.weights_bytes = 1'000'000'000;
    layer.bytes_per_token = 1e9;
    layer.flops_per_token = 1e9;
    layer.kv_per_token = i < 2 ? 1000 : 0;
    layer.vectors = i + 1;
    costs.layers.push_back(layer);
  }
  return costs;
}

Cluster TwoNodes() {
  Cluster cluster;
  for (const char* name : {"a", "b"}) {
    Node node;
    node.name = name;
    node.memory_bytes = 4'000'000'000;
    node.memory_bandwidth = 1e11;
    node.compute[kComputeDefault] = 1e12;
    cluster.nodes.push_back(node);
  }
  cluster.link_default = {1e9, 1e-4};
  return cluster;
}

// Each node twice in the route, so that one link has two hops.
class Curves : public ::testing::Test {
 protected:
  Curves() : model_(costs_, cluster_, 4096) {
    PlanOptions options;
    options.concurrency = 12;
    plan_.route = {{0, 0, 0}, {1, 1, 1}, {0, 2, 2}, {1, 3, 3}};
    FillNumbers(model_, options, plan_);
  }

  const ModelCosts costs_ = FourLayers();
  Cluster cluster_ = TwoNodes();
  const CostModel model_;
  Plan plan_;
};

// Hops over one direction of a link add up; the other direction is its own.
TEST_F(Curves, LinksAddUpTheirHops) {
  const auto links = LinkSharesOf(model_, plan_);
  ASSERT_EQ(links.size(), 2);
  EXPECT_EQ(links[0].from, 0);
  EXPECT_EQ(links[0].hops, 2);
  const auto rows = static_cast<double>(*plan_.rows);
  EXPECT_DOUBLE_EQ(*links[0].occupancy_s, rows * (2 + 4) * 1e6 / 1e9);
  EXPECT_DOUBLE_EQ(*links[1].occupancy_s, rows * 3 * 1e6 / 1e9);
  cluster_.link_default.bandwidth.reset();
  EXPECT_FALSE(LinkSharesOf(model_, plan_)[0].occupancy_s.has_value());
}

// The curve goes through the plan's own number, and stages without KV but the
// same pools share one.
TEST_F(Curves, ContextCurvesAreThePlans) {
  const ContextCurves curves = ContextCurvesOf(model_, plan_, 1 << 20);
  EXPECT_EQ(curves.contexts.front(), 1024);
  EXPECT_EQ(curves.contexts.back(), 1 << 20);
  EXPECT_EQ(curves.sequences[2], plan_.concurrency.front().sequences);
  ASSERT_EQ(curves.stages.size(), 1);
  EXPECT_EQ(curves.stages[0].num_alike, 2);
  EXPECT_EQ(curves.stages[0].sequences[2], 2'000'000'000 / (4096 * 1000));
}

// The plan's own numbers are a point of the curve for its rows.
TEST_F(Curves, ThroughputCurveHoldsThePlan) {
  const auto points = ThroughputCurveOf(model_, plan_, 1000);
  ASSERT_FALSE(points.empty());
  bool found = false;
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].sequences, points[i].rows * points[i].microbatches);
    EXPECT_LE(points[i].sequences, 1000);
    if (i > 0) {
      EXPECT_GT(points[i].sequences, points[i - 1].sequences);
    }
    if (points[i].rows == *plan_.rows &&
        points[i].microbatches == *plan_.microbatches) {
      found = true;
      EXPECT_EQ(points[i].tokens_per_s, *plan_.tokens_per_s);
      EXPECT_EQ(points[i].tpot_s, *plan_.tpot_s);
    }
  }
  EXPECT_TRUE(found) << *plan_.rows;
}

}  // namespace
}  // namespace millrace::planner::report
