#include "planner/report/page.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "boost/json/object.hpp"
#include "planner/plan_names.h"
#include "planner/report/page_inputs.h"
#include "planner/report/page_pictures.h"
#include "planner/report/page_stages.h"
#include "planner/report/page_style.h"
#include "planner/report/page_text.h"

namespace millrace::planner::report {
namespace {

const std::string& NodeNamed(const ReportInput& input, int64_t node) {
  return input.cluster->nodes[static_cast<size_t>(node)].name;
}

// Nothing is loaded even where a browser would: the policy forbids all but the
// page's own style sheet.
std::string Head(const ReportInput& input) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>Plan of ",
      Escaped(input.costs->name), "</title>\n<style>", kPageStyle,
      "</style>\n</head>\n<body>\n");
}

// The sentence of the verdict, which starts with the answer itself.
std::string VerdictBox(const Plan& plan) {
  absl::string_view rest = plan.verdict;
  const bool starts_so =
      absl::ConsumePrefix(&rest, plan.fits ? "fits" : "does not fit");
  return absl::StrCat("<div class=\"verdict", plan.fits ? "" : " no", "\"><b>",
                      plan.fits ? "Fits" : "Does not fit", "</b>",
                      starts_so ? "" : ". ", Escaped(rest), ".</div>\n");
}

std::string Verdict(const ReportInput& input) {
  const Plan& plan = *input.plan;
  const PlanOptions& options = *input.options;
  return absl::StrCat(
      "<h1>Plan of ", Escaped(input.costs->name), "</h1>\n",
      "<p class=\"quiet\">", CountText(input.costs->layers.size()), " ",
      NounFor(std::ssize(input.costs->layers), "layer"), ", ",
      plan.fits ? absl::StrCat("on ", CountText(plan.stages.size()), " of ")
                : "",
      CountText(input.cluster->nodes.size()), " ",
      NounFor(std::ssize(input.cluster->nodes), "node"), ". Objective ",
      NameOf(plan.objective), ", placement ", NameOf(plan.placement), ", ",
      CountText(options.sequences()), " ",
      NounFor(options.sequences(), "sequence"), " of ",
      CountText(options.contexts.front()), " ",
      NounFor(options.contexts.front(), "token"), " must fit.</p>\n",
      VerdictBox(plan),
      "<p class=\"quiet\">Marks: <b>g</b> given in the files, <b>e</b> "
      "estimated from them, <b>m</b> measured.</p>\n");
}

std::string Facts(const ReportInput& input) {
  const Plan& plan = *input.plan;
  std::string out = "<dl class=\"facts\">\n";
  const auto add = [&](const char* name, const std::string& value,
                       const char* key) {
    absl::StrAppend(&out, "<div><dt>", name, "</dt><dd>", value,
                    value == "unknown" ? "" : MarkOf(*input.provenance, key),
                    "</dd></div>\n");
  };
  add("tokens per second", RateData(plan.tokens_per_s), "tokens_per_s");
  add("TPOT", SecondsData(plan.tpot_s), "tpot_s");
  if (input.options->prompt_len.has_value()) {
    add("TTFT", SecondsData(plan.ttft_s), "ttft_s");
  }
  const ContextConcurrency& first = plan.concurrency.front();
  add("sequences that fit",
      first.sequences.has_value() ? CountData(first.sequences) : "unbounded",
      "concurrency.sequences");
  add("cycle", SecondsData(plan.cycle_s), "cycle_s");
  add("loop", SecondsData(plan.loop_s), "loop_s");
  add("micro-batches N*", CountData(plan.microbatches), "microbatches");
  add("rows in each", CountData(plan.rows), "rows");
  add("nodes used", CountData(plan.stages.size()), "nodes_used");
  if (plan.tokens_per_joule.has_value()) {
    add("tokens per joule", RateData(plan.tokens_per_joule),
        "tokens_per_joule");
  }
  return absl::StrCat(out, "</dl>\n");
}

// Prediction beside measurement; empty where nothing was measured.
std::string Measurement(const ReportInput& input) {
  if (!input.measured.has_value()) {
    return "";
  }
  const MeasuredPlan& measured = *input.measured;
  const JsonObject all_measured = {{"all", "measured"}};
  const std::string mark = MarkOf(all_measured, "all");
  std::string out = absl::StrCat(
      "<h2>Measured</h2>\n<div class=\"scroll\"><table><caption>With ",
      CountText(measured.sequences), " ",
      NounFor(measured.sequences, "sequence"),
      " on the cluster of this plan; error: predicted / measured - "
      "1</caption>\n<thead><tr><th class=\"left\" scope=\"col\">number</th>"
      "<th scope=\"col\">predicted</th><th scope=\"col\">measured",
      mark, "</th><th scope=\"col\">error</th></tr></thead>\n<tbody>\n");
  const auto add = [&](const char* name, const Comparison& both,
                       std::string (*text)(const std::optional<double>&)) {
    absl::StrAppendFormat(
        &out,
        "<tr><th class=\"left\" scope=\"row\">%s</th><td>%s</td><td>%s</td>"
        "<td>%+.0f %%</td></tr>\n",
        name, text(both.predicted), text(both.measured),
        100 * (both.predicted / both.measured - 1));
  };
  add("tokens per second", measured.tokens_per_s, RateData);
  add("TPOT", measured.tpot_s, SecondsData);
  return absl::StrCat(out, "</tbody></table></div>\n");
}

std::string Notes(const Plan& plan) {
  std::string out;
  for (const std::string& note : plan.notes) {
    absl::StrAppend(&out, "<p class=\"quiet\">Note: ", Escaped(note), "</p>\n");
  }
  return out;
}

std::string BindingSentence(const ReportInput& input) {
  const Binding& binding = input.plan->binding;
  if (!binding.node.has_value()) {
    return "<p>Nothing binds: no node or link limits this plan.</p>\n";
  }
  const std::string node = Escaped(NodeNamed(input, *binding.node));
  switch (binding.kind) {
    case BindingKind::kMemory:
      return absl::StrCat("<p>Memory binds, on node <b>", node, "</b>.</p>\n");
    case BindingKind::kTime:
      return absl::StrCat("<p>Time binds: node <b>", node,
                          "</b> sets the cycle.</p>\n");
    case BindingKind::kLink:
      return absl::StrCat("<p>A link binds: the one from node <b>", node,
                          "</b> sets the cycle.</p>\n");
  }
  return "";
}

std::string AdviceTable(const ReportInput& input) {
  if (input.plan->advice.empty()) {
    return "<p>No change that was tried would help.</p>\n";
  }
  std::string out = absl::StrCat(
      "<div class=\"scroll\"><table><caption>What would help, each found by "
      "planning anew with that change</caption>\n<thead><tr>"
      "<th class=\"left\" scope=\"col\">change</th>"
      "<th class=\"left\" scope=\"col\">effect",
      MarkOf(*input.provenance, "advice.effect"),
      "</th></tr></thead>\n<tbody>\n");
  for (const Advice& advice : input.plan->advice) {
    absl::StrAppend(&out, "<tr><th class=\"left\" scope=\"row\">",
                    Escaped(advice.change), "</th><td class=\"left\">",
                    Escaped(advice.effect), "</td></tr>\n");
  }
  return absl::StrCat(out, "</tbody></table></div>\n");
}

std::string GapSentence(const Bounds& bounds) {
  if (!bounds.gap.has_value()) {
    return "<p>How far this is from the best plan is not known.</p>\n";
  }
  return *bounds.gap <= 0
             ? std::string(
                   "<p>Proven best: no plan is better by the objective's "
                   "first criterion.</p>\n")
             : absl::StrCat("<p>Within <data value=\"", *bounds.gap, "\">",
                            PercentText(*bounds.gap),
                            "</data> of a bound that no plan can beat, by the "
                            "objective's first criterion.</p>\n");
}

std::string BoundsTable(const ReportInput& input) {
  const Plan& plan = *input.plan;
  const Bounds& bounds = plan.bounds;
  std::string out = absl::StrCat(
      "<h2>Bounds</h2>\n", GapSentence(bounds),
      "<div class=\"scroll\"><table>\n<thead><tr><th class=\"left\" "
      "scope=\"col\">number</th><th scope=\"col\">plan</th>"
      "<th scope=\"col\">no plan beats</th></tr></thead>\n<tbody>\n");
  const auto add = [&](const char* name, const std::string& own,
                       const std::string& bound, const char* key) {
    absl::StrAppend(&out, "<tr><th class=\"left\" scope=\"row\">", name,
                    "</th><td>", own, "</td><td>", bound,
                    bound == "unknown" ? ""
                                       : MarkOf(*input.provenance,
                                                absl::StrCat("bounds.", key)),
                    "</td></tr>\n");
  };
  add("cycle, least", SecondsData(plan.cycle_s), SecondsData(bounds.cycle_s),
      "cycle_s");
  add("tokens per second, most", RateData(plan.tokens_per_s),
      RateData(bounds.tokens_per_s), "tokens_per_s");
  const std::optional<int64_t>& held = plan.concurrency.front().sequences;
  add("sequences, most", held.has_value() ? CountData(held) : "unbounded",
      CountData(bounds.sequences), "sequences");
  add("nodes, fewest", CountData(plan.stages.size()),
      CountData(bounds.nodes_used), "nodes_used");
  return absl::StrCat(out, "</tbody></table></div>\n");
}

std::string MissingMemory(const ReportInput& input, const CostModel& model) {
  const LayerRun all{0, model.num_layers()};
  absl::int128 memory = 0;
  for (int64_t node = 0; node < model.num_nodes(); ++node) {
    memory += std::max<int64_t>(0, model.Available(node));
  }
  const std::string mark = MarkOf(*input.provenance, "stages.weights_bytes");
  return absl::StrCat("<h2>Memory</h2>\n<p>The model weighs ",
                      SizeData(model.WeightsBytes(all)), mark, "; ",
                      CountText(model.num_nodes()), " ",
                      NounFor(model.num_nodes(), "node"),
                      model.num_nodes() == 1 ? " has " : " have ",
                      SizeData(static_cast<int64_t>(std::min<absl::int128>(
                          memory, std::numeric_limits<int64_t>::max()))),
                      mark, " in all beyond their reserve.</p>\n");
}

}  // namespace

std::string HtmlReport(const ReportInput& input) {
  const CostModel model(*input.costs, *input.cluster,
                        input.options->contexts.front(), input.scratch);
  std::string out = absl::StrCat(Head(input), Verdict(input));
  if (input.plan->fits) {
    absl::StrAppend(&out, Facts(input), Measurement(input),
                    "<h2>What binds</h2>\n", BindingSentence(input),
                    Notes(*input.plan), AdviceTable(input));
    absl::StrAppend(&out, BoundsTable(input), StageTable(input, model));
    absl::StrAppend(&out, MemoryPicture(input, model),
                    CyclePicture(input, model), ContextPicture(input, model),
                    ThroughputPicture(input, model));
  } else {
    absl::StrAppend(&out, "<h2>What would help</h2>\n", Notes(*input.plan),
                    AdviceTable(input), MissingMemory(input, model));
  }
  absl::StrAppend(&out, InputsTable(input));
  absl::StrAppend(&out, "</body>\n</html>\n");
  return out;
}

}  // namespace millrace::planner::report
