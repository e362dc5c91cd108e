#include "planner/report/context_curves.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/plan_numbers.h"

namespace millrace::planner::report {
namespace {

constexpr int64_t kShortest = 1024;

// Empty: the stage keeps nothing per sequence.
std::vector<int64_t> SequencesOf(const CostModel& model, const NodeRuns& node,
                                 const PlanStage& stage,
                                 const std::vector<int64_t>& contexts) {
  std::vector<int64_t> sequences;
  for (const int64_t context : contexts) {
    absl::int128 need = 0;
    for (const LayerRun& run : node.runs) {
      need += model.SequenceBytesAt(run, context);
    }
    if (need == 0) {
      return {};
    }
    sequences.push_back(static_cast<int64_t>(
        absl::int128(std::max<int64_t>(0, stage.free_bytes)) / need));
  }
  return sequences;
}

}  // namespace

ContextCurves ContextCurvesOf(const CostModel& model, const Plan& plan,
                              int64_t context_max) {
  ContextCurves curves;
  int64_t first = std::min(kShortest, context_max);
  for (const ContextConcurrency& entry : plan.concurrency) {
    first = std::min(first, entry.context);
  }
  int64_t start = 1;
  while (start * 2 <= first) {
    start *= 2;
  }
  for (int64_t context = start; context <= context_max; context *= 2) {
    curves.contexts.push_back(context);
  }
  const std::vector<NodeRuns> nodes = RunsByNode(plan.route);
  for (const int64_t context : curves.contexts) {
    curves.sequences.push_back(ConcurrencyAt(model, nodes, context).sequences);
  }
  // Ordered by the curves: the lowest at the shortest context first.
  std::map<std::vector<int64_t>, StageCurve> distinct;
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<int64_t> sequences =
        SequencesOf(model, nodes[i], plan.stages[i], curves.contexts);
    if (sequences.empty()) {
      continue;
    }
    const auto [found, is_new] = distinct.try_emplace(std::move(sequences));
    if (is_new) {
      found->second.node = nodes[i].node;
      found->second.sequences = found->first;
    } else {
      ++found->second.num_alike;
    }
  }
  for (auto& [key, curve] : distinct) {
    if (curves.stages.size() < kStageCurvesMax) {
      curves.stages.push_back(std::move(curve));
    } else {
      curves.num_other_stages += curve.num_alike;
    }
  }
  return curves;
}

}  // namespace millrace::planner::report
