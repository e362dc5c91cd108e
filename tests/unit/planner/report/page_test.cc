#include "planner/report/page.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "boost/json/object.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan_codec.h"
#include "planner/plan_numbers.h"

namespace millrace::planner::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A plan with one layer on each of its nodes, and all that it was made from.
struct Case {
  ModelCosts costs;
  Cluster cluster;
  PlanOptions options;
  Plan plan;
};

Case OneLayerEach(int64_t count) {
  Case made;
  made.costs.name = "model";
  made.costs.hidden_bytes = 8192;
  made.costs.first = {500'000'000, 0, 0};
  made.costs.last = {700'000'000, 7e8, 1e9};
  made.cluster.link_default = {1e9, 1e-5};
  made.cluster.reserve_bytes = 1'000'000'000;
  for (int64_t i = 0; i < count; ++i) {
    LayerCost layer;
    layer.kind = "full";
    layer.weights_bytes = 4'000'000'000;
    layer.bytes_per_token = 4e9;
    layer.flops_per_token = 8e9;
    layer.kv_per_token = 4096;
    layer.state_per_sequence = 1'000'000;
    made.costs.layers.push_back(layer);
    Node node;
    node.name = absl::StrCat("n", i);
    node.memory_bytes = 16'000'000'000 + i % 3 * 1'000'000'000;
    node.memory_bandwidth = 2e11;
    node.compute[kComputeDefault] = 4e12;
    made.cluster.nodes.push_back(node);
  }
  made.options.contexts = {8192, 32768};
  made.options.concurrency = 20;
  made.plan.fits = true;
  made.plan.verdict = "fits on all nodes";
  return made;
}

// Works the numbers out again after a change.
void Fill(Case& made) {
  const CostModel model(made.costs, made.cluster,
                        made.options.contexts.front());
  made.plan.route.clear();
  for (int64_t i = 0; i < model.num_layers(); ++i) {
    made.plan.route.push_back({i, i, i});
  }
  FillNumbers(model, made.options, made.plan);
}

std::string PageOf(const Case& made) {
  const Json document =
      PlanToJson(made.plan, made.costs, made.cluster, made.options);
  ReportInput input;
  input.plan = &made.plan;
  input.costs = &made.costs;
  input.cluster = &made.cluster;
  input.options = &made.options;
  input.provenance = &document.at("provenance").as_object();
  return HtmlReport(input);
}

std::string Exact(double value) {
  return absl::StrFormat("<data value=\"%.17g\">", value);
}

std::string Exact(int64_t value) {
  return absl::StrCat("<data value=\"", value, "\">");
}

// The first place where the tags of a page do not match; empty when they do.
// Attribute values of our pages hold neither < nor >.
std::string Unbalanced(absl::string_view page) {
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != page.npos; at = page.find('<', at)) {
    const size_t end = page.find('>', at);
    if (end == page.npos) {
      return absl::StrCat("no end: ", page.substr(at, 40));
    }
    const absl::string_view tag = page.substr(at + 1, end - at - 1);
    at = end;
    const std::string name =
        std::vector<std::string>(absl::StrSplit(tag, ' '))[0];
    if (tag.front() == '!' || tag.back() == '/' || name == "meta") {
      continue;
    }
    if (tag.front() != '/') {
      open.push_back(name);
      continue;
    }
    if (open.empty() || absl::StrCat("/", open.back()) != name) {
      return absl::StrCat("closes what is not open: ", tag);
    }
    open.pop_back();
  }
  return open.empty() ? "" : absl::StrCat("stays open: ", open.back());
}

// Every number of the plan stands in the page, exact and marked.
TEST(HtmlReport, ShowsTheNumbersOfThePlan) {
  Case made = OneLayerEach(3);
  made.options.prompt_len = 1000;
  Fill(made);
  made.plan.bounds = {1e-3, 1000.0, 77, 2, 0.25};
  made.plan.advice = {{"one more node of 44 GB", "+31 sequences", 31}};
  const Plan& plan = made.plan;
  const std::string page = PageOf(made);
  EXPECT_EQ(Unbalanced(page), "");
  for (const std::optional<double>& value :
       {plan.cycle_s, plan.loop_s, plan.tokens_per_s, plan.tpot_s, plan.ttft_s,
        plan.bounds.cycle_s, plan.bounds.tokens_per_s}) {
    ASSERT_TRUE(value.has_value());
    EXPECT_THAT(page, HasSubstr(Exact(*value)));
  }
  for (const PlanStage& stage : plan.stages) {
    EXPECT_THAT(page, HasSubstr(Exact(stage.weights_bytes)));
    EXPECT_THAT(page, HasSubstr(Exact(stage.kv_bytes)));
    EXPECT_THAT(page, HasSubstr(Exact(stage.free_bytes - stage.kv_bytes)));
    EXPECT_THAT(page, HasSubstr(Exact(*stage.segment_s)));
  }
  for (const ContextConcurrency& entry : plan.concurrency) {
    EXPECT_THAT(page, HasSubstr(Exact(*entry.sequences)));
  }
  EXPECT_THAT(page, HasSubstr(Exact(*plan.microbatches)));
  EXPECT_THAT(page, HasSubstr(Exact(*plan.rows)));
  EXPECT_THAT(page, HasSubstr("one more node of 44 GB"));
  EXPECT_THAT(page, HasSubstr("+31 sequences"));
  EXPECT_THAT(page, HasSubstr("title=\"estimated\""));
  EXPECT_THAT(page, HasSubstr("title=\"given\""));
  EXPECT_LT(page.find("<b>Fits</b> on all nodes."), page.find("<table"));
}

// Names that are markup come out as text, in tables and in pictures.
TEST(HtmlReport, EscapesEveryTextFromFiles) {
  Case made = OneLayerEach(2);
  const std::string evil = "<script>alert('1')</script>\"&";
  made.costs.name = evil;
  made.cluster.nodes[0].name = evil;
  made.cluster.nodes[1].name = evil + "2";
  Fill(made);
  made.plan.verdict = evil;
  made.plan.advice = {{evil, evil, 1}};
  made.plan.bounds.gap = 0;
  const std::string page = PageOf(made);
  EXPECT_EQ(Unbalanced(page), "");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("alert('")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)&lt;/script"
                              "&gt;&quot;&amp;"));
}

// Nothing in a page makes a browser fetch or run anything.
TEST(HtmlReport, LoadsNothing) {
  Case made = OneLayerEach(2);
  Fill(made);
  const std::string page = PageOf(made);
  for (const char* word : {"http:", "https:", "src=", "href=", "@import",
                           "url(", "<script", "<link", "<iframe", " on"}) {
    const bool is_handler = std::string(word) == " on";
    EXPECT_FALSE(is_handler ? absl::StrContains(page, " onload=") ||
                                  absl::StrContains(page, " onclick=")
                            : absl::StrContains(page, word))
        << word;
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

// What was measured is marked so: fields of the cluster, and what running the
// plan showed.
TEST(HtmlReport, MarksWhatWasMeasured) {
  Case made = OneLayerEach(2);
  Fill(made);
  made.plan.notes = {"a note & more"};
  Json document = PlanToJson(made.plan, made.costs, made.cluster, made.options);
  boost::json::object& words = document.at("provenance").as_object();
  ReportInput input{&made.plan, &made.costs, &made.cluster, &made.options};
  input.provenance = &words;
  const std::string measured = "title=\"measured\"";
  const std::string before = HtmlReport(input);
  EXPECT_THAT(before, Not(HasSubstr(measured)));
  EXPECT_THAT(before, HasSubstr("a note &amp; more"));
  words["inputs.cluster.nodes.n0.compute"] = "measured";
  EXPECT_THAT(HtmlReport(input), HasSubstr(measured));
  words.erase("inputs.cluster.nodes.n0.compute");
  input.measured = MeasuredPlan{7, {120, 100}, {0.05, 0.0625}};
  const std::string page = HtmlReport(input);
  EXPECT_EQ(Unbalanced(page), "");
  EXPECT_THAT(page, HasSubstr(measured));
  EXPECT_THAT(page, HasSubstr("+20 %"));
  EXPECT_THAT(page, HasSubstr("-20 %"));
}

// A plan that does not fit says so first and what would help.
TEST(HtmlReport, OfAPlanThatDoesNotFit) {
  Case made = OneLayerEach(2);
  made.plan.fits = false;
  made.plan.verdict = "does not fit: needs 3 GB more";
  made.plan.advice = {{"larger nodes", "it fits", 1}};
  const std::string page = PageOf(made);
  EXPECT_EQ(Unbalanced(page), "");
  EXPECT_THAT(page, HasSubstr("<b>Does not fit</b>: needs 3 GB more."));
  EXPECT_THAT(page, HasSubstr("larger nodes"));
  EXPECT_THAT(page, HasSubstr(Exact(int64_t{9'200'000'000})));
  EXPECT_THAT(page, Not(HasSubstr("<svg")));
}

// What a cluster file does not give is unknown, never 0 and never "nan".
TEST(HtmlReport, OfUnknownTimes) {
  Case made = OneLayerEach(3);
  made.cluster.nodes[1].memory_bandwidth.reset();
  made.cluster.link_default = {};
  Fill(made);
  ASSERT_FALSE(made.plan.cycle_s.has_value());
  const std::string page = PageOf(made);
  EXPECT_EQ(Unbalanced(page), "");
  EXPECT_THAT(page, HasSubstr("<dd>unknown</dd>"));
  EXPECT_THAT(page, HasSubstr("Some times are unknown"));
  EXPECT_THAT(page, HasSubstr("there is no curve"));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf")));
}

// A model that keeps nothing per sequence has no curve over lengths.
TEST(HtmlReport, OfUnboundedSequences) {
  Case made = OneLayerEach(2);
  for (LayerCost& layer : made.costs.layers) {
    layer.kv_per_token = 0;
    layer.state_per_sequence = 0;
  }
  Fill(made);
  const std::string page = PageOf(made);
  EXPECT_EQ(Unbalanced(page), "");
  EXPECT_THAT(page, HasSubstr("<dd>unbounded"));
  EXPECT_THAT(page, HasSubstr("No layer keeps anything per sequence"));
}

// Many stages, alike and all different, stay within a size that opens at once,
// and the page says what a row stands for.
TEST(HtmlReport, OfTenThousandStagesIsBounded) {
  Case made = OneLayerEach(10'000);
  for (Node& node : made.cluster.nodes) {
    node.memory_bytes = 16'000'000'000;
  }
  Fill(made);
  const std::string alike = PageOf(made);
  EXPECT_EQ(Unbalanced(alike), "");
  EXPECT_LT(alike.size(), 200'000);
  EXPECT_THAT(alike, HasSubstr("10,000 stages in 3 rows"));
  EXPECT_THAT(alike, HasSubstr("(9998 alike)"));

  int64_t extra = 0;
  for (Node& node : made.cluster.nodes) {
    node.name = absl::StrCat(std::string(500, '<'), extra);
    node.memory_bytes += ++extra * 1'000'000;
    *node.memory_bandwidth += 1e6 * static_cast<double>(extra);
  }
  Fill(made);
  const std::string different = PageOf(made);
  EXPECT_EQ(Unbalanced(different), "");
  EXPECT_LT(different.size(), 2'000'000);
  EXPECT_THAT(different, HasSubstr("10,000 stages in 200 rows"));
  EXPECT_THAT(different, HasSubstr("(50 stages)"));
}

}  // namespace
}  // namespace millrace::planner::report
