#include "coordinator/simulation/pipeline_of_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "planner/cost_model.h"
#include "planner/plan_numbers.h"
#include "planner/streamed/held_costs.h"

namespace millrace::coordinator {
namespace {

using planner::LayerRun;
using planner::NodeRuns;
using planner::PlanStage;

constexpr int64_t kChunkDefault = 512;
// Where memory bounds nothing.
constexpr int64_t kSequencesMost = 4096;
// As a server: more sequences than worst cases may be open, as short ones take
// less KV. Not where each slot holds a state.
constexpr int64_t kSlotsPerSequence = 4;
// What the core takes: blocks of a pool, and sequence slots and rows of a frame
// within memory here.
constexpr int64_t kBlocksMax = int64_t{1} << 30;
constexpr int64_t kSlotsMax = int64_t{1} << 20;
constexpr int64_t kChunkMax = int64_t{1} << 20;

int64_t BlocksOf(int64_t positions) {
  return (positions + kKvBlockPositions - 1) / kKvBlockPositions;
}

// What one sequence of the first context keeps on a node, in blocks of 64
// positions.
struct SequenceNeed {
  absl::int128 bytes = 0;
  int64_t full_blocks = 0;             // 0: no layer keeps all positions
  std::vector<int64_t> window_blocks;  // of each length of window
};

class PlanConverter {
 public:
  PlanConverter(const planner::ModelCosts& costs,
                const planner::Cluster& cluster,
                const planner::PlanOptions& options, const planner::Plan& plan,
                const BeyondPlan& beyond)
      : costs_(costs),
        cluster_(cluster),
        options_(options),
        plan_(plan),
        beyond_(beyond),
        model_(costs, cluster, options.contexts.front()) {}

  absl::StatusOr<SimulatedPipeline> Convert() {
    if (!plan_.fits || plan_.route.empty()) {
      return AnswerIsNo("plan", "does not fit, so there is nothing to simulate",
                        "plan with more memory or another cluster");
    }
    pipeline_.context = options_.contexts.front();
    pipeline_.chunk = std::min(
        {options_.chunk.value_or(kChunkDefault), pipeline_.context, kChunkMax});
    // Unknown only where a time is, which is named below.
    pipeline_.microbatches_wanted = plan_.microbatches.value_or(0);
    pipeline_.microbatches =
        std::min(pipeline_.microbatches_wanted, planner::kMicrobatchesRunMax);
    pipeline_.coordinator_s = beyond_.coordinator_s;
    MILLRACE_RETURN_IF_ERROR(AddNodes());
    for (const planner::RouteEntry& entry : plan_.route) {
      MILLRACE_RETURN_IF_ERROR(AddSegment(entry.node, entry.run()));
    }
    for (size_t hop = 1; hop < plan_.route.size(); ++hop) {
      MILLRACE_RETURN_IF_ERROR(AddHop(hop));
    }
    MILLRACE_RETURN_IF_ERROR(AddReturn());
    MILLRACE_RETURN_IF_ERROR(pipeline_.Validate());
    return std::move(pipeline_);
  }

 private:
  const std::string& NameOf(int64_t node) const {
    return cluster_.nodes[static_cast<size_t>(node)].name;
  }

  absl::Status AddNodes() {
    const std::vector<NodeRuns> nodes = planner::RunsByNode(plan_.route);
    std::vector<SequenceNeed> needs;
    int64_t sequences =
        std::min(options_.concurrency.value_or(kSequencesMost), kSlotsMax);
    bool has_state = false;
    for (size_t i = 0; i < nodes.size(); ++i) {
      index_.emplace(nodes[i].node, static_cast<int64_t>(i));
      has_state = has_state || plan_.stages[i].state_bytes_per_sequence > 0;
      const SequenceNeed& need = needs.emplace_back(NeedOf(nodes[i]));
      const absl::int128 free = plan_.stages[i].free_bytes;
      if (need.bytes > 0 && free < need.bytes * sequences) {
        sequences = static_cast<int64_t>(free / need.bytes);
      }
      if (sequences < 1) {
        return AnswerIsNo(
            NameOf(nodes[i].node),
            absl::StrCat("has no room for the KV of a sequence of ",
                         pipeline_.context, " positions in blocks of ",
                         kKvBlockPositions),
            "plan with a shorter --context");
      }
    }
    const int64_t slots =
        has_state ? sequences
                  : std::min(sequences * kSlotsPerSequence, kSlotsMax);
    for (size_t i = 0; i < nodes.size(); ++i) {
      StagePool& pool = pipeline_.nodes.emplace_back();
      pool.name = NameOf(nodes[i].node);
      pool.slots = slots;
      pool.full_blocks = std::min(kBlocksMax, needs[i].full_blocks * sequences);
      for (const int64_t blocks : needs[i].window_blocks) {
        pool.windows.push_back(WindowPool{
            .ring_blocks = blocks,
            .pool_blocks = std::min(kBlocksMax, blocks * sequences)});
      }
    }
    // An even share of all sequences decodes in one frame, beside a chunk.
    const int64_t shares = std::max<int64_t>(1, pipeline_.microbatches);
    pipeline_.rows_max =
        pipeline_.chunk + std::max<int64_t>(256, slots / shares + 1);
    return absl::OkStatus();
  }

  SequenceNeed NeedOf(const NodeRuns& node) const {
    SequenceNeed need;
    std::set<int64_t> windows;  // in blocks
    const int64_t all = BlocksOf(pipeline_.context);
    for (const LayerRun& run : node.runs) {
      for (int64_t i = run.begin; i < run.end; ++i) {
        const planner::LayerCost& layer = costs_.layers[static_cast<size_t>(i)];
        need.bytes += layer.state_per_sequence;
        if (layer.kv_per_token == 0) {
          continue;
        }
        const bool full = layer.kv_positions_max == 0;
        const int64_t blocks =
            full ? all : std::min(all, BlocksOf(layer.kv_positions_max));
        need.bytes +=
            absl::int128(layer.kv_per_token) * kKvBlockPositions * blocks;
        if (full) {
          need.full_blocks = all;
        } else {
          windows.insert(blocks);
        }
      }
    }
    need.window_blocks.assign(windows.begin(), windows.end());
    return need;
  }

  absl::Status AddSegment(int64_t node, LayerRun run) {
    const std::optional<planner::PassCost> pass = model_.Pass(node, run);
    if (!pass.has_value()) {
      return Unknown(NameOf(node),
                     absl::StrCat("no ", model_.MissingRate(node, run)));
    }
    SimulatedSegment segment{.node = index_.at(node),
                             .pass_s = pass->fixed_s,
                             .row_s = pass->row_s,
                             .experts = {}};
    // Bytes of one expert in all layers of the same shape.
    std::map<std::pair<int64_t, int64_t>, double> bytes;
    for (int64_t i = run.begin; i < run.end; ++i) {
      const planner::ExpertCost& experts =
          costs_.layers[static_cast<size_t>(i)].experts;
      if (experts.count > 0 && experts.used > 0) {
        bytes[{experts.count, experts.used}] += experts.bytes_each;
      }
    }
    const planner::Node& hardware = cluster_.nodes[static_cast<size_t>(node)];
    for (const auto& [shape, each] : bytes) {
      if (hardware.memory_bandwidth.has_value()) {
        segment.experts.push_back(ExpertReads{
            .count = shape.first,
            .used = shape.second,
            .seconds_per_expert = each / *hardware.memory_bandwidth});
      }
    }
    if (beyond_.sequence_reads) {
      MILLRACE_RETURN_IF_ERROR(AddSequenceReads(hardware, run, segment));
    }
    pipeline_.segments.push_back(std::move(segment));
    return absl::OkStatus();
  }

  // Windows count as many positions as their layers keep.
  absl::Status AddSequenceReads(const planner::Node& node, LayerRun run,
                                SimulatedSegment& segment) const {
    std::map<int64_t, int64_t> kv;  // bytes of a position by positions_max
    int64_t state = 0;
    for (int64_t i = run.begin; i < run.end; ++i) {
      const planner::LayerCost& layer = costs_.layers[static_cast<size_t>(i)];
      state += layer.state_per_sequence;
      if (layer.kv_per_token > 0) {
        kv[layer.kv_positions_max] += layer.kv_per_token;
      }
    }
    if (kv.empty() && state == 0) {
      return absl::OkStatus();
    }
    if (!node.memory_bandwidth.has_value()) {
      return Unknown(node.name, "no memory_bandwidth");
    }
    segment.sequence_s =
        2 * static_cast<double>(state) / *node.memory_bandwidth;
    for (const auto& [positions_max, bytes] : kv) {
      segment.kv.push_back(
          {positions_max, static_cast<double>(bytes) / *node.memory_bandwidth});
    }
    return absl::OkStatus();
  }

  // From entry hop - 1 of the route to entry hop.
  absl::Status AddHop(size_t hop) {
    const planner::RouteEntry& to = plan_.route[hop];
    const int64_t from = plan_.route[hop - 1].node;
    const planner::Link& link = model_.LinkBetween(from, to.node);
    if (!link.bandwidth.has_value() || !link.latency_s.has_value()) {
      return UnknownLink(from, to.node, link);
    }
    pipeline_.hops.push_back(
        SimulatedHop{.row_s = model_.CutBytes(to.first_layer) / *link.bandwidth,
                     .latency_s = *link.latency_s});
    return absl::OkStatus();
  }

  absl::Status AddReturn() {
    const int64_t from = plan_.route.back().node;
    const int64_t to = plan_.route.front().node;
    if (from == to) {
      return absl::OkStatus();
    }
    const planner::Link& link = model_.LinkBetween(from, to);
    if (!link.latency_s.has_value()) {
      return UnknownLink(from, to, link);
    }
    pipeline_.return_s = *link.latency_s;
    return absl::OkStatus();
  }

  absl::Status UnknownLink(int64_t from, int64_t to,
                           const planner::Link& link) const {
    return Unknown(absl::StrCat("link from ", NameOf(from), " to ", NameOf(to)),
                   link.latency_s.has_value() ? "no bandwidth" : "no latency");
  }

  static absl::Status Unknown(absl::string_view object,
                              absl::string_view what) {
    return InputError(object,
                      absl::StrCat("has ", what, ", so its times are unknown"),
                      "give it in the cluster file and plan anew");
  }

  const planner::ModelCosts& costs_;
  const planner::Cluster& cluster_;
  const planner::PlanOptions& options_;
  const planner::Plan& plan_;
  const BeyondPlan beyond_;
  const planner::CostModel model_;
  SimulatedPipeline pipeline_;
  absl::flat_hash_map<int64_t, int64_t> index_;  // of cluster nodes in nodes
};

}  // namespace

absl::StatusOr<SimulatedPipeline> PipelineOfPlan(
    const planner::ModelCosts& costs, const planner::Cluster& cluster,
    const planner::PlanOptions& options, const planner::Plan& plan,
    const BeyondPlan& beyond) {
  const planner::ModelCosts held =
      planner::streamed::CostsOfPlan(costs, cluster, options, plan);
  return PlanConverter(held, cluster, options, plan, beyond).Convert();
}

}  // namespace millrace::coordinator
