#include "planner/report/page_stages.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/quantity.h"
#include "planner/criteria.h"
#include "planner/plan_numbers.h"
#include "planner/report/bar_chart.h"
#include "planner/report/link_shares.h"
#include "planner/report/neighbor_groups.h"
#include "planner/report/page_text.h"

namespace millrace::planner::report {
namespace {

// Runs of layers of one stage that are written out.
constexpr size_t kRunsShownMax = 6;
// Of more links only those that take this share of the cycle have a bar.
constexpr size_t kLinksShownMax = 6;
constexpr double kShareThatMatters = 0.01;

const std::string& NameOf(const ReportInput& input, int64_t node) {
  return input.cluster->nodes[static_cast<size_t>(node)].name;
}

int64_t LayersIn(const NodeRuns& node) {
  int64_t layers = 0;
  for (const LayerRun& run : node.runs) {
    layers += run.end - run.begin;
  }
  return layers;
}

// "0-3, 8-11"
std::string LayersText(const NodeRuns& node) {
  std::string out;
  for (size_t i = 0; i < node.runs.size(); ++i) {
    const LayerRun& run = node.runs[i];
    if (i == kRunsShownMax) {
      return absl::StrCat(
          out, " and ",
          Counted(std::ssize(node.runs) - static_cast<int64_t>(i), "more run"));
    }
    absl::StrAppend(
        &out, i > 0 ? ", " : "", run.begin,
        run.end - run.begin > 1 ? absl::StrCat("–", run.end - 1) : "");
  }
  return out;
}

// The stages of a plan as rows.
class StageRows {
 public:
  explicit StageRows(const ReportInput& input)
      : input_(input),
        nodes_(RunsByNode(input.plan->route)),
        groups_(GroupNeighbors(
            input.plan->stages.size(),
            [this](size_t a, size_t b) { return Alike(a, b); })) {}

  [[nodiscard]] const std::vector<NeighborGroup>& groups() const {
    return groups_;
  }
  [[nodiscard]] const NodeRuns& runs(size_t stage) const {
    return nodes_[stage];
  }
  [[nodiscard]] const PlanStage& stage(size_t i) const {
    return input_.plan->stages[i];
  }
  [[nodiscard]] int64_t Spare(size_t i) const {
    return stage(i).free_bytes - stage(i).kv_bytes;
  }
  // Weights that stand with the first and the last layer; those of a tied head
  // once.
  [[nodiscard]] int64_t EndBytes(size_t i) const;
  // The stage of a row with the least to spare, and the slowest.
  [[nodiscard]] size_t Tightest(const NeighborGroup& group) const;
  [[nodiscard]] size_t Slowest(const NeighborGroup& group) const;
  [[nodiscard]] bool Binds(const NeighborGroup& group) const;
  // "a", "a … d (4 alike)", "a … d (4 stages)".
  [[nodiscard]] std::string Label(const NeighborGroup& group) const;
  // What the rows stand for, as a sentence; empty when each is one stage.
  [[nodiscard]] std::string Note(const char* which) const;

 private:
  [[nodiscard]] bool Alike(size_t a, size_t b) const;

  const ReportInput& input_;
  const std::vector<NodeRuns> nodes_;
  const std::vector<NeighborGroup> groups_;
};

bool StageRows::Alike(size_t a, size_t b) const {
  const PlanStage& x = stage(a);
  const PlanStage& y = stage(b);
  return x.weights_bytes == y.weights_bytes &&
         x.scratch_bytes == y.scratch_bytes && x.kv_bytes == y.kv_bytes &&
         x.kv_bytes_per_token == y.kv_bytes_per_token &&
         x.state_bytes_per_sequence == y.state_bytes_per_sequence &&
         x.free_bytes == y.free_bytes && x.segment_s == y.segment_s &&
         LayersIn(nodes_[a]) == LayersIn(nodes_[b]) &&
         EndBytes(a) == EndBytes(b);
}

int64_t StageRows::EndBytes(size_t i) const {
  const std::vector<LayerRun>& held = nodes_[i].runs;
  const ModelCosts& costs = *input_.costs;
  const bool first = held.front().begin == 0;
  const bool last =
      held.back().end == static_cast<int64_t>(costs.layers.size());
  return (first ? costs.first.weights_bytes : 0) +
         (last ? costs.last.weights_bytes : 0) -
         (first && last ? costs.shared_weights_bytes : 0);
}

size_t StageRows::Tightest(const NeighborGroup& group) const {
  size_t tightest = group.begin;
  for (size_t i = group.begin; i < group.end; ++i) {
    tightest = Spare(i) < Spare(tightest) ? i : tightest;
  }
  return tightest;
}

size_t StageRows::Slowest(const NeighborGroup& group) const {
  size_t slowest = group.begin;
  for (size_t i = group.begin; i < group.end; ++i) {
    slowest = stage(i).segment_s > stage(slowest).segment_s ? i : slowest;
  }
  return slowest;
}

bool StageRows::Binds(const NeighborGroup& group) const {
  const std::optional<int64_t>& binding = input_.plan->binding.node;
  for (size_t i = group.begin; i < group.end && binding.has_value(); ++i) {
    if (stage(i).node == *binding) {
      return true;
    }
  }
  return false;
}

std::string StageRows::Label(const NeighborGroup& group) const {
  const std::string& first = NameOf(input_, stage(group.begin).node);
  if (group.size() == 1) {
    return first;
  }
  return absl::StrCat(Shortened(first, 60), " … ",
                      Shortened(NameOf(input_, stage(group.end - 1).node), 60),
                      " (", group.size(), group.alike ? " alike)" : " stages)");
}

std::string StageRows::Note(const char* which) const {
  if (groups_.size() == input_.plan->stages.size()) {
    return "";
  }
  const std::string stages =
      CountText(static_cast<int64_t>(input_.plan->stages.size()));
  const std::string rows = Counted(std::ssize(groups_), "row");
  return groups_.front().alike
             ? absl::StrCat("<p>", stages, " stages in ", rows,
                            ": neighbors that are alike in layers, memory "
                            "and time share one.</p>\n")
             : absl::StrCat("<p>", stages, " stages in ", rows,
                            ": a row stands for neighbors and shows the ",
                            which, " of them.</p>\n");
}

void AppendStageRow(const StageRows& rows, const NeighborGroup& group,
                    std::string& out) {
  const size_t shown = rows.Tightest(group);
  const PlanStage& stage = rows.stage(shown);
  const std::string layers =
      group.size() == 1 ? LayersText(rows.runs(shown))
                        : absl::StrCat(LayersIn(rows.runs(shown)), " each");
  const bool binds = rows.Binds(group);
  absl::StrAppend(
      &out, binds ? "<tr class=\"binds\">" : "<tr>", "<td>", group.begin,
      group.size() > 1 ? absl::StrCat("–", group.end - 1) : "",
      "</td><th class=\"left\" scope=\"row\">", Escaped(rows.Label(group)),
      binds ? " (binds)" : "", "</th><td class=\"wrap\">", layers, "</td><td>",
      SizeData(stage.weights_bytes), "</td><td>",
      SizeData(stage.kv_bytes_per_token), "</td><td>",
      SizeData(stage.state_bytes_per_sequence), "</td><td>");
  absl::StrAppend(&out, SizeData(stage.kv_bytes), "</td><td>",
                  SizeData(stage.scratch_bytes), "</td><td>",
                  SizeData(rows.Spare(shown)), "</td><td>",
                  SecondsData(stage.segment_s), "</td></tr>\n");
}

std::vector<BarPart> MemoryParts(const ReportInput& input,
                                 const StageRows& rows, size_t shown) {
  const PlanStage& stage = rows.stage(shown);
  const int64_t ends = rows.EndBytes(shown);
  std::vector<BarPart> parts;
  const auto add = [&](const char* style, const char* name, int64_t bytes) {
    parts.push_back({style, name,
                     static_cast<double>(std::max<int64_t>(0, bytes)),
                     HumanSize(bytes)});
  };
  add("weights", "weights of layers", stage.weights_bytes - ends);
  add("ends", "embedding and head", ends);
  add("scratch", "scratch", stage.scratch_bytes);
  add("kv", "KV and state", stage.kv_bytes);
  add("free", "free", rows.Spare(shown));
  add("reserve", "reserve", input.cluster->reserve_bytes);
  return parts;
}

std::string Key(const char* style, const char* name) {
  return absl::StrCat("<span class=\"key\"><i class=\"", style, "\"></i>", name,
                      "</span>\n");
}

// Seconds and the share of the cycle.
std::string ShareText(const std::optional<double>& seconds,
                      const std::optional<double>& cycle) {
  return cycle.has_value() && *cycle > 0 && seconds.has_value()
             ? absl::StrCat(SecondsText(seconds), ", ",
                            PercentText(*seconds / *cycle))
             : SecondsText(seconds);
}

Bar TimeBar(const std::string& label, const char* style,
            const std::optional<double>& seconds,
            const std::optional<double>& cycle) {
  const std::string text = ShareText(seconds, cycle);
  const bool sets_cycle = cycle.has_value() && *cycle > 0 &&
                          seconds.value_or(0) >= *cycle * (1 - kEqualTimes);
  return {label,
          text,
          {{sets_cycle ? "bind" : style, "time", seconds.value_or(0), text}}};
}

// Of many links those that hardly matter share one bar, with the largest time.
void AddLinkBars(const ReportInput& input, const CostModel& model,
                 std::vector<Bar>& bars) {
  const std::optional<double>& cycle = input.plan->cycle_s;
  std::vector<LinkShare> links = LinkSharesOf(model, *input.plan);
  const auto matters = [&](const LinkShare& link) {
    return links.size() <= kLinksShownMax || !cycle.has_value() ||
           !link.occupancy_s.has_value() ||
           *link.occupancy_s >= kShareThatMatters * *cycle;
  };
  const auto small = std::stable_partition(links.begin(), links.end(), matters);
  const std::vector<LinkShare> rest(small, links.end());
  links.erase(small, links.end());
  const auto slower = [](const LinkShare& a, const LinkShare& b) {
    return a.occupancy_s < b.occupancy_s;
  };
  for (const NeighborGroup& group :
       GroupNeighbors(links.size(), [&](size_t a, size_t b) {
         return links[a].occupancy_s == links[b].occupancy_s;
       })) {
    const auto begin = links.begin() + static_cast<ptrdiff_t>(group.begin);
    const auto end = links.begin() + static_cast<ptrdiff_t>(group.end);
    const LinkShare& shown = *std::max_element(begin, end, slower);
    const std::string from = NameOf(input, shown.from);
    bars.push_back(TimeBar(
        group.size() > 1 ? absl::StrCat(group.size(), " links, as from ", from)
                         : absl::StrCat(Shortened(from, 11), " → ",
                                        Shortened(NameOf(input, shown.to), 11)),
        "link", shown.occupancy_s, cycle));
  }
  if (!rest.empty()) {
    bars.push_back(TimeBar(
        absl::StrCat(Counted(std::ssize(rest), "link"), ", at most"), "link",
        std::max_element(rest.begin(), rest.end(), slower)->occupancy_s,
        cycle));
  }
}

}  // namespace

std::string StageTable(const ReportInput& input, const CostModel& /*model*/) {
  const StageRows rows(input);
  const auto mark = [&](const char* key) {
    return MarkOf(*input.provenance, absl::StrCat("stages.", key));
  };
  std::string out = absl::StrCat(
      "<h2>Stages</h2>\n", rows.Note("tightest"),
      "<div class=\"scroll\"><table><caption>KV and state pools are those of "
      "the sequences that must fit, ",
      CountText(input.options->sequences()), " of ",
      CountText(input.options->contexts.front()),
      " tokens; free is what they leave.</caption>\n<thead><tr>"
      "<th scope=\"col\">stage</th><th class=\"left\" scope=\"col\">node</th>"
      "<th scope=\"col\">layers",
      MarkOf(*input.provenance, "route.first_layer"),
      "</th><th scope=\"col\">weights", mark("weights_bytes"),
      "</th><th scope=\"col\">KV per token", mark("kv_bytes_per_token"));
  absl::StrAppend(&out, "</th><th scope=\"col\">state per sequence",
                  mark("state_bytes_per_sequence"),
                  "</th><th scope=\"col\">KV and state", mark("kv_bytes"),
                  "</th><th scope=\"col\">scratch", mark("scratch_bytes"),
                  "</th><th scope=\"col\">free", mark("free_bytes"),
                  "</th><th scope=\"col\">time per pass", mark("segment_s"),
                  "</th></tr></thead>\n<tbody>\n");
  for (const NeighborGroup& group : rows.groups()) {
    AppendStageRow(rows, group, out);
  }
  absl::StrAppend(&out, "</tbody></table></div>\n");
  return out;
}

std::string MemoryPicture(const ReportInput& input,
                          const CostModel& /*model*/) {
  const StageRows rows(input);
  BarChart chart;
  chart.title = "Memory of each stage by what it holds";
  const bool by_memory = input.plan->binding.kind == BindingKind::kMemory;
  double high = 0;
  for (const NeighborGroup& group : rows.groups()) {
    const size_t shown = rows.Tightest(group);
    chart.bars.push_back(
        {rows.Label(group),
         absl::StrCat(HumanSize(rows.Spare(shown)), " free",
                      by_memory && rows.Binds(group) ? ", binds" : ""),
         MemoryParts(input, rows, shown)});
    double sum = 0;
    for (const BarPart& part : chart.bars.back().parts) {
      sum += part.value;
    }
    high = std::max(high, sum);
  }
  chart.axis = SizeAxis("memory", high);
  return absl::StrCat(
      "<h2>Memory</h2>\n<figure><figcaption>\n",
      Key("weights", "weights of layers"), Key("ends", "embedding and head"),
      Key("scratch", "scratch"), Key("kv", "KV and state"), Key("free", "free"),
      Key("reserve", "reserve"), rows.Note("tightest"), "</figcaption>\n",
      BarChartSvg(chart), "</figure>\n");
}

std::string CyclePicture(const ReportInput& input, const CostModel& model) {
  const StageRows rows(input);
  const Plan& plan = *input.plan;
  BarChart chart;
  chart.title = "Time of each node and link in one cycle";
  for (const NeighborGroup& group : rows.groups()) {
    chart.bars.push_back(TimeBar(rows.Label(group), "weights",
                                 rows.stage(rows.Slowest(group)).segment_s,
                                 plan.cycle_s));
  }
  AddLinkBars(input, model, chart.bars);
  double high = plan.cycle_s.value_or(0);
  for (const Bar& bar : chart.bars) {
    high = std::max(high, bar.parts.front().value);
  }
  chart.axis = SecondsAxis("time per pass", high);
  std::string what =
      plan.cycle_s.has_value()
          ? absl::StrCat("The cycle takes ", SecondsText(plan.cycle_s),
                         MarkOf(*input.provenance, "cycle_s"),
                         ": the slowest node or link sets it. Shares are of "
                         "the cycle.")
          : "Some times are unknown: the cluster file lacks a number that they "
            "need.";
  return absl::StrCat("<h2>Cycle</h2>\n<figure><figcaption>\n<p>", what,
                      "</p>\n", Key("weights", "node"), Key("link", "link"),
                      Key("bind", "sets the cycle"), rows.Note("slowest"),
                      "</figcaption>\n", high > 0 ? BarChartSvg(chart) : "",
                      "</figure>\n");
}

}  // namespace millrace::planner::report
