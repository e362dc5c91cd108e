#include "cli/plan_table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "planner/plan_numbers.h"

namespace millrace::cli {
namespace {

std::string NameOf(const planner::Cluster& cluster, int64_t node) {
  return Printable(cluster.nodes[static_cast<size_t>(node)].name);
}

std::string Seconds(const std::optional<double>& seconds) {
  return seconds.has_value() ? HumanDuration(absl::Seconds(*seconds))
                             : "unknown";
}

// "0-3,8-11"
std::string LayersOf(const planner::NodeRuns& node) {
  return absl::StrJoin(node.runs, ",",
                       [](std::string* out, const planner::LayerRun& run) {
                         absl::StrAppend(out, run.begin);
                         if (run.end - run.begin > 1) {
                           absl::StrAppend(out, "-", run.end - 1);
                         }
                       });
}

void AppendStages(const planner::Plan& plan, const planner::Cluster& cluster,
                  std::string& out) {
  const std::vector<planner::NodeRuns> nodes = planner::RunsByNode(plan.route);
  int width = 9;
  for (const planner::NodeRuns& node : nodes) {
    width = std::max(width, static_cast<int>(LayersOf(node).size()));
  }
  absl::StrAppendFormat(&out, "\n%5s  %-12s %*s %10s %10s %10s %10s %9s\n",
                        "stage", "node", width, "layers", "weights", "KV pool",
                        "scratch", "spare", "per pass");
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const planner::PlanStage& stage = plan.stages[i];
    absl::StrAppendFormat(
        &out, "%5d  %-12s %*s %10s %10s %10s %10s %9s\n", i,
        NameOf(cluster, stage.node), width, LayersOf(nodes[i]),
        HumanSize(stage.weights_bytes), HumanSize(stage.kv_bytes),
        HumanSize(stage.scratch_bytes),
        HumanSize(stage.free_bytes - stage.kv_bytes), Seconds(stage.segment_s));
  }
}

// What streamed stages hold and read of their experts; of many the first ones.
void AppendReads(const planner::Plan& plan, const planner::Cluster& cluster,
                 std::string& out) {
  constexpr int kShown = 40;
  int shown = 0;
  for (const planner::PlanStage& stage : plan.stages) {
    if (!stage.streamed.has_value() || stage.streamed->hit_share == 1 ||
        ++shown > kShown) {
      continue;
    }
    absl::StrAppendFormat(
        &out, "%s%s holds %d of %d experts and reads %s in %s a pass\n",
        shown == 1 ? "\n" : "", NameOf(cluster, stage.node),
        stage.streamed->experts_held, stage.streamed->experts,
        HumanSize(static_cast<int64_t>(stage.streamed->read_bytes.value_or(0))),
        Seconds(stage.streamed->read_s));
  }
  if (shown > kShown) {
    absl::StrAppendFormat(&out, "and %d others read too\n", shown - kShown);
  }
}

const char* BindingText(planner::BindingKind kind) {
  switch (kind) {
    case planner::BindingKind::kMemory:
      return "memory";
    case planner::BindingKind::kTime:
      return "time";
    case planner::BindingKind::kLink:
      return "the link from it";
  }
  return "";
}

}  // namespace

std::string PlanTable(const planner::Plan& plan,
                      const planner::Cluster& cluster) {
  std::string out = absl::StrCat(plan.verdict, "\n");
  if (plan.fits) {
    AppendStages(plan, cluster, out);
    AppendReads(plan, cluster, out);
    absl::StrAppend(&out, "\n");
    for (const planner::ContextConcurrency& entry : plan.concurrency) {
      absl::StrAppend(
          &out, "at ", Counted(entry.context, "token"), ": ",
          entry.sequences.has_value() ? Counted(*entry.sequences, "sequence")
                                      : "unbounded sequences",
          entry.binding_node.has_value()
              ? absl::StrCat(" (", NameOf(cluster, *entry.binding_node),
                             " binds)")
              : "",
          "\n");
    }
    absl::StrAppend(
        &out, "cycle ", Seconds(plan.cycle_s), ", loop ", Seconds(plan.loop_s),
        ", TPOT ", Seconds(plan.tpot_s),
        plan.microbatches.has_value()
            ? absl::StrCat(", ", *plan.microbatches,
                           *plan.microbatches == 1 ? " micro-batch fills"
                                                   : " micro-batches fill",
                           " the pipeline")
            : "",
        "\n");
    if (plan.binding.node.has_value()) {
      absl::StrAppend(&out, NameOf(cluster, *plan.binding.node), " binds by ",
                      BindingText(plan.binding.kind), "\n");
    }
  }
  for (const std::string& note : plan.notes) {
    absl::StrAppend(&out, "note: ", note, "\n");
  }
  for (const planner::Advice& advice : plan.advice) {
    absl::StrAppend(&out, "what would help: ", advice.change, ": ",
                    advice.effect, "\n");
  }
  return out;
}

}  // namespace millrace::cli
