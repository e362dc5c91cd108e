#include "planner/report/page_pictures.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "planner/report/context_curves.h"
#include "planner/report/line_chart.h"
#include "planner/report/page_text.h"
#include "planner/report/throughput_curve.h"

namespace millrace::planner::report {
namespace {

// Sequences up to which throughput is shown where memory sets no end.
constexpr int64_t kSequencesShownMax = 4096;
// Nothing is shown beyond, whatever memory would hold.
constexpr int64_t kSequencesMost = int64_t{1} << 20;

const std::string& NameOf(const ReportInput& input, int64_t node) {
  return input.cluster->nodes[static_cast<size_t>(node)].name;
}

std::string SequencesText(const std::optional<int64_t>& sequences) {
  return sequences.has_value() ? CountData(sequences) : "unbounded";
}

// The lengths that were asked for.
std::string AskedTable(const ReportInput& input) {
  std::string out = absl::StrCat(
      "<div class=\"scroll\"><table class=\"narrow\"><caption>Lengths that "
      "were asked "
      "for</caption>\n<thead><tr><th scope=\"col\">tokens",
      MarkOf(*input.provenance, "concurrency.context"),
      "</th><th scope=\"col\">sequences",
      MarkOf(*input.provenance, "concurrency.sequences"),
      "</th><th class=\"left\" scope=\"col\">the stage that binds</th></tr>"
      "</thead>\n<tbody>\n");
  for (const ContextConcurrency& entry : input.plan->concurrency) {
    absl::StrAppend(&out, "<tr><td>", CountData(entry.context), "</td><td>",
                    SequencesText(entry.sequences), "</td><td class=\"left\">",
                    entry.binding_node.has_value()
                        ? Escaped(NameOf(input, *entry.binding_node))
                        : "none",
                    "</td></tr>\n");
  }
  absl::StrAppend(&out, "</tbody></table></div>\n");
  return out;
}

// Lengths of one sequence or more; a logarithmic axis has no 0.
std::vector<std::pair<double, double>> Points(
    const std::vector<int64_t>& contexts,
    const std::vector<int64_t>& sequences) {
  std::vector<std::pair<double, double>> points;
  for (size_t i = 0; i < contexts.size(); ++i) {
    if (sequences[i] > 0) {
      points.emplace_back(contexts[i], sequences[i]);
    }
  }
  return points;
}

std::vector<Curve> CurvesToDraw(const ReportInput& input,
                                const ContextCurves& curves) {
  std::vector<Curve> drawn;
  for (const StageCurve& stage : curves.stages) {
    drawn.push_back(
        {"other",
         stage.num_alike > 1
             ? absl::StrCat(NameOf(input, stage.node), " and ",
                            Counted(stage.num_alike - 1, "stage"), " like it")
             : NameOf(input, stage.node),
         Points(curves.contexts, stage.sequences)});
  }
  std::vector<int64_t> whole;
  for (const std::optional<int64_t>& sequences : curves.sequences) {
    whole.push_back(sequences.value_or(0));
  }
  drawn.push_back({"whole", "the plan", Points(curves.contexts, whole)});
  return drawn;
}

LineChart ContextChart(const ReportInput& input, const ContextCurves& curves) {
  LineChart chart;
  chart.title = "Sequences that fit at one time, by their length";
  chart.curves = CurvesToDraw(input, curves);
  double most = 1;
  for (const Curve& curve : chart.curves) {
    for (const auto& [context, sequences] : curve.points) {
      most = std::max(most, sequences);
    }
  }
  double longest = static_cast<double>(curves.contexts.back());
  for (const ContextConcurrency& entry : input.plan->concurrency) {
    const auto context = static_cast<double>(entry.context);
    longest = std::max(longest, context);
    if (entry.sequences.value_or(0) > 0 && chart.spots.size() < 8) {
      const auto sequences = static_cast<double>(*entry.sequences);
      most = std::max(most, sequences);
      chart.spots.push_back({context, sequences,
                             absl::StrCat(CountText(entry.sequences), " of ",
                                          CountText(entry.context))});
    }
  }
  chart.x = BinaryAxis("tokens of a sequence",
                       static_cast<double>(curves.contexts.front()), longest);
  chart.y = DecimalAxis("sequences", 1, most);
  return chart;
}

std::string CurveTable(const ReportInput& input, const ContextCurves& curves) {
  std::string out = absl::StrCat(
      "<div class=\"scroll\"><table class=\"narrow\"><caption>The curve in "
      "numbers</caption>\n<thead><tr><th scope=\"col\">tokens</th>"
      "<th scope=\"col\">sequences",
      MarkOf(*input.provenance, "concurrency.sequences"),
      "</th></tr></thead>\n<tbody>\n");
  for (size_t i = 0; i < curves.contexts.size(); ++i) {
    absl::StrAppend(&out, "<tr><td>", CountData(curves.contexts[i]),
                    "</td><td>", SequencesText(curves.sequences[i]),
                    "</td></tr>\n");
  }
  absl::StrAppend(&out, "</tbody></table></div>\n");
  return out;
}

// Sequences that memory holds at the first length; nothing: no end.
std::optional<int64_t> Held(const Plan& plan) {
  return plan.concurrency.empty() ? std::nullopt
                                  : plan.concurrency.front().sequences;
}

std::string ThroughputTable(const ReportInput& input,
                            const std::vector<ThroughputPoint>& points) {
  const JsonObject& words = *input.provenance;
  std::string out = absl::StrCat(
      "<div class=\"scroll\"><table class=\"narrow\"><caption>Both curves in "
      "numbers</caption>\n<thead><tr><th scope=\"col\">sequences</th>"
      "<th scope=\"col\">rows",
      MarkOf(words, "rows"), "</th><th scope=\"col\">micro-batches",
      MarkOf(words, "microbatches"), "</th><th scope=\"col\">tokens/s",
      MarkOf(words, "tokens_per_s"), "</th><th scope=\"col\">TPOT",
      MarkOf(words, "tpot_s"), "</th></tr></thead>\n<tbody>\n");
  for (const ThroughputPoint& point : points) {
    absl::StrAppend(&out, "<tr><td>", CountData(point.sequences), "</td><td>",
                    CountData(point.rows), "</td><td>",
                    CountData(point.microbatches), "</td><td>",
                    RateData(point.tokens_per_s), "</td><td>",
                    SecondsData(point.tpot_s), "</td></tr>\n");
  }
  absl::StrAppend(&out, "</tbody></table></div>\n");
  return out;
}

// A chart over the sequences in flight, its curve and the plan's own point yet
// to be set.
LineChart ChartBySequences(const char* title, double most,
                           const std::optional<int64_t>& held) {
  LineChart chart;
  chart.title = title;
  if (held.value_or(0) > 0 && static_cast<double>(*held) <= most) {
    chart.limit = static_cast<double>(*held);
    chart.limit_label = absl::StrCat("memory ends at ", CountText(held));
  }
  chart.x = BinaryAxis("sequences at one time", 1, most);
  return chart;
}

std::string ThroughputCharts(const Plan& plan,
                             const std::vector<ThroughputPoint>& points) {
  const bool has_spot = plan.tokens_per_s.has_value() &&
                        plan.tpot_s.has_value() && plan.rows.has_value() &&
                        plan.microbatches.has_value();
  const double own = has_spot ? static_cast<double>(*plan.rows) *
                                    static_cast<double>(*plan.microbatches)
                              : 1;
  double most =
      std::max({own, static_cast<double>(points.back().sequences), 2.0});
  const std::optional<int64_t> held = Held(plan);
  if (held.value_or(0) <= kSequencesMost) {
    most = std::max(most, static_cast<double>(held.value_or(0)));
  }
  LineChart rate = ChartBySequences(
      "Tokens per second by sequences at one time", most, held);
  LineChart tpot = ChartBySequences(
      "Time per output token by sequences at one time", most, held);
  rate.curves.push_back({"whole", "tokens per second", {}});
  tpot.curves.push_back({"whole", "time per output token", {}});
  double rate_high = plan.tokens_per_s.value_or(0);
  double tpot_high = plan.tpot_s.value_or(0);
  for (const ThroughputPoint& point : points) {
    const auto x = static_cast<double>(point.sequences);
    rate.curves[0].points.emplace_back(x, point.tokens_per_s);
    tpot.curves[0].points.emplace_back(x, point.tpot_s);
    rate_high = std::max(rate_high, point.tokens_per_s);
    tpot_high = std::max(tpot_high, point.tpot_s);
  }
  if (has_spot) {
    rate.spots.push_back(
        {own, *plan.tokens_per_s,
         absl::StrCat("plan: ", RateText(plan.tokens_per_s), " tokens/s")});
    tpot.spots.push_back(
        {own, *plan.tpot_s, absl::StrCat("plan: ", SecondsText(plan.tpot_s))});
  }
  rate.y = PlainAxis("tokens per second", rate_high * 1.1);
  tpot.y = SecondsAxis("TPOT", tpot_high * 1.1);
  return absl::StrCat(LineChartSvg(rate), LineChartSvg(tpot));
}

}  // namespace

std::string ContextPicture(const ReportInput& input, const CostModel& model) {
  const ContextCurves curves =
      ContextCurvesOf(model, *input.plan, input.context_max);
  std::string out = absl::StrCat("<h2>Concurrency by context length</h2>\n",
                                 AskedTable(input));
  if (curves.stages.empty()) {
    return absl::StrCat(out,
                        "<p>No layer keeps anything per sequence: memory sets "
                        "no end to their number.</p>\n");
  }
  const bool any_fits = curves.sequences.front().value_or(0) > 0;
  if (any_fits) {
    absl::StrAppend(
        &out,
        "<figure class=\"short\"><figcaption><p>Every stage has its own pools; "
        "the plan holds what its poorest stage holds.</p>\n"
        "<span class=\"key\"><i class=\"weights\"></i>the plan</span>\n"
        "<span class=\"key\"><i class=\"other\"></i>single stages</span>\n",
        curves.num_other_stages > 0
            ? absl::StrCat("<p>", CountText(curves.num_other_stages), " ",
                           NounFor(curves.num_other_stages, "stage"),
                           " with more room left out.</p>\n")
            : "",
        "</figcaption>\n", LineChartSvg(ContextChart(input, curves)),
        "</figure>\n");
  }
  absl::StrAppend(&out, CurveTable(input, curves));
  return out;
}

std::string ThroughputPicture(const ReportInput& input,
                              const CostModel& model) {
  const Plan& plan = *input.plan;
  int64_t most =
      std::min(Held(plan).value_or(kSequencesShownMax), kSequencesMost);
  if (plan.rows.has_value() && plan.microbatches.has_value()) {
    most = std::max(most, *plan.rows * *plan.microbatches);
  }
  const std::vector<ThroughputPoint> points =
      ThroughputCurveOf(model, plan, most);
  std::string out = "<h2>Throughput by concurrency</h2>\n";
  if (points.empty()) {
    return absl::StrCat(out,
                        "<p>Times are unknown, or a pass takes none: there is "
                        "no curve.</p>\n");
  }
  absl::StrAppend(
      &out, "<figure><figcaption><p>One row per micro-batch until N* = ",
      CountText(plan.microbatches), MarkOf(*input.provenance, "microbatches"),
      " of them fill the pipeline with the plan's rows; then more rows in "
      "each.</p></figcaption>\n",
      ThroughputCharts(plan, points), "</figure>\n",
      ThroughputTable(input, points));
  return out;
}

}  // namespace millrace::planner::report
