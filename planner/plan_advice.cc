#include "planner/plan_advice.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "planner/plan_once.h"

namespace millrace::planner {
namespace {

// Nodes times layers beyond which one more search takes too long to look for
// advice: a plan of 10,000 nodes should take about a second in all.
constexpr int64_t kWorkMax = 500'000;
// The same of streamed plans, whose runs take longer to look at.
constexpr int64_t kStreamedWorkMax = 20'000;
// An effect below this share is not worth a sentence.
constexpr double kLeastGain = 0.005;

int64_t Doubled(int64_t value) {
  return value > std::numeric_limits<int64_t>::max() / 2
             ? std::numeric_limits<int64_t>::max()
             : 2 * value;
}

// How much better `with` is by the first criterion of the objective, as a share
// of `plan`, and in words; nothing where it is not, or where it is unknown.
std::optional<Advice> EffectOf(const Plan& plan, const Plan& with) {
  Advice advice;
  if (!plan.fits || !with.fits) {
    if (plan.fits || !with.fits) {
      return std::nullopt;
    }
    advice.gain = std::numeric_limits<double>::max();
    advice.effect = "fits";
    return advice;
  }
  const auto share = [&](const std::optional<double>& before,
                         const std::optional<double>& after, const char* what) {
    if (before.has_value() && after.has_value() && *before > 0) {
      advice.gain = *after / *before - 1;
      advice.effect = absl::StrFormat("+%.3g %% %s", 100 * advice.gain, what);
    }
  };
  switch (plan.objective) {
    case Objective::kThroughput:
      share(plan.tokens_per_s, with.tokens_per_s, "tokens/s");
      break;
    case Objective::kEnergy:
      share(plan.tokens_per_joule, with.tokens_per_joule, "tokens per joule");
      break;
    case Objective::kLatency:
      if (plan.loop_s.has_value() && with.loop_s.has_value() &&
          *with.loop_s > 0) {
        advice.gain = *plan.loop_s / *with.loop_s - 1;
        advice.effect =
            absl::StrFormat("%.3g %% less time a token",
                            100 * (1 - *with.loop_s / *plan.loop_s));
      }
      break;
    case Objective::kConcurrency: {
      const std::optional<int64_t>& before = plan.concurrency[0].sequences;
      const std::optional<int64_t>& after = with.concurrency[0].sequences;
      if (before.has_value() && after.has_value()) {
        advice.gain = static_cast<double>(*after - *before) /
                      static_cast<double>(std::max<int64_t>(1, *before));
        advice.effect =
            absl::StrCat("+", Counted(*after - *before, "sequence"));
      }
      break;
    }
    case Objective::kNodes: {
      const auto saved = static_cast<int64_t>(plan.stages.size()) -
                         static_cast<int64_t>(with.stages.size());
      advice.gain =
          static_cast<double>(saved) / static_cast<double>(plan.stages.size());
      advice.effect = absl::StrCat(Counted(saved, "node"), " fewer");
      break;
    }
  }
  return advice.gain > kLeastGain ? std::optional<Advice>(advice)
                                  : std::nullopt;
}

class Adviser {
 public:
  Adviser(const PlanInput& input, const Plan& plan)
      : input_(input), plan_(plan) {}

  std::vector<Advice> Advise() {
    TryNodes();
    TryWorkload();
    TryConstraints();
    for (const PlanInput::Alternative& other : input_.alternatives) {
      PlanInput changed = input_;
      changed.costs = other.costs;
      Try(other.change, changed);
    }
    std::stable_sort(
        advice_.begin(), advice_.end(),
        [](const Advice& a, const Advice& b) { return a.gain > b.gain; });
    return std::move(advice_);
  }

 private:
  void Try(const std::string& change, const PlanInput& changed) {
    const absl::StatusOr<Plan> with = PlanOnce(changed);
    if (!with.ok()) {
      // A change may need what nobody gave, as a second node needs a link: its
      // effect is unknown, and the plan as good as before.
      return;
    }
    if (std::optional<Advice> advice = EffectOf(plan_, *with);
        advice.has_value()) {
      advice->change = change;
      advice_.push_back(*std::move(advice));
    }
  }

  void TryCluster(const std::string& change,
                  const std::function<void(Cluster&)>& apply) {
    Cluster cluster = *input_.cluster;
    apply(cluster);
    PlanInput changed = input_;
    changed.cluster = &cluster;
    Try(change, changed);
  }

  void TryOptions(const std::string& change,
                  const std::function<void(PlanOptions&)>& apply) {
    PlanOptions options = *input_.options;
    apply(options);
    PlanInput changed = input_;
    changed.options = &options;
    Try(change, changed);
  }

  // The node that binds; of a plan that does not fit the one with most memory.
  [[nodiscard]] size_t NodeInQuestion() const {
    if (plan_.binding.node.has_value()) {
      return static_cast<size_t>(*plan_.binding.node);
    }
    const std::vector<Node>& nodes = input_.cluster->nodes;
    return static_cast<size_t>(
        std::max_element(nodes.begin(), nodes.end(),
                         [](const Node& a, const Node& b) {
                           return a.memory_bytes < b.memory_bytes;
                         }) -
        nodes.begin());
  }

  void TryNodes() {
    const size_t node = NodeInQuestion();
    const Node& hardware = input_.cluster->nodes[node];
    const std::string name = Printable(hardware.name);
    if (input_.cluster->nodes.size() < static_cast<size_t>(kNodesMax)) {
      TryCluster(absl::StrCat("one more node like ", name, " (",
                              HumanSize(hardware.memory_bytes), ")"),
                 [&](Cluster& cluster) {
                   cluster.nodes.push_back(hardware);
                   cluster.nodes.back().name += "+1";
                 });
    }
    TryCluster(absl::StrCat("twice the memory on ", name),
               [node](Cluster& cluster) {
                 cluster.nodes[node].memory_bytes =
                     Doubled(cluster.nodes[node].memory_bytes);
               });

    TryCluster("twice the memory on every node", [](Cluster& cluster) {
      for (Node& each : cluster.nodes) {
        each.memory_bytes = Doubled(each.memory_bytes);
      }
    });
    if (!plan_.cycle_s.has_value()) {
      return;
    }

    TryCluster(absl::StrCat("a node twice as fast in place of ", name),
               [node](Cluster& cluster) {
                 Node& faster = cluster.nodes[node];
                 if (faster.memory_bandwidth.has_value()) {
                   *faster.memory_bandwidth *= 2;
                 }
                 for (auto& [format, rate] : faster.compute) {
                   rate *= 2;
                 }
               });
    if (input_.options->placement == PlacementKind::kStreamed) {
      TryCluster("NVMe of twice the bandwidth on every node",
                 [](Cluster& cluster) {
                   for (Node& each : cluster.nodes) {
                     if (each.nvme_bandwidth.has_value()) {
                       *each.nvme_bandwidth *= 2;
                     }
                   }
                 });
    }
    if (plan_.stages.size() > 1) {
      TryCluster("links of twice the bandwidth", [](Cluster& cluster) {
        const auto faster = [](Link& link) {
          if (link.bandwidth.has_value()) {
            *link.bandwidth *= 2;
          }
        };
        faster(cluster.link_default);
        for (NodePairLink& pair : cluster.links) {
          faster(pair.link);
        }
      });
    }
  }

  // A cost file does not say what could be read from a disk.
  [[nodiscard]] bool StreamingIsOpen() const {
    const std::vector<Node>& nodes = input_.cluster->nodes;
    return input_.options->placement != PlacementKind::kStreamed &&
           !input_.costs->digest.empty() &&
           std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
             return node.nvme_bandwidth.has_value();
           });
  }

  void TryWorkload() {
    const int64_t context = input_.options->contexts[0];
    if (context > 1) {
      TryOptions(absl::StrCat("--context ", context / 2),
                 [](PlanOptions& options) { options.contexts[0] /= 2; });
    }
    if (const int64_t sequences = input_.options->sequences();
        sequences > 1 &&
        (!plan_.fits || input_.options->objective == Objective::kNodes)) {
      TryOptions(absl::StrCat("--concurrency ", sequences / 2),
                 [](PlanOptions& options) { *options.concurrency /= 2; });
    }
    if (!plan_.fits && StreamingIsOpen()) {
      TryOptions("--placement streamed", [](PlanOptions& options) {
        options.placement = PlacementKind::kStreamed;
      });
    }
    if (input_.options->placement == PlacementKind::kContiguous) {
      TryOptions("--placement interleaved", [](PlanOptions& options) {
        options.placement = PlacementKind::kInterleaved;
      });
    }
  }

  void TryConstraints() {
    if (!input_.cluster->constraints.empty()) {
      TryCluster("no constraints",
                 [](Cluster& cluster) { cluster.constraints.clear(); });
    }
  }

  const PlanInput& input_;
  const Plan& plan_;
  std::vector<Advice> advice_;
};

}  // namespace

std::vector<Advice> AdviceFor(const PlanInput& input, const Plan& plan) {
  const int64_t most = input.options->placement == PlacementKind::kStreamed
                           ? kStreamedWorkMax
                           : kWorkMax;
  // Both factors are at most 100,000: no overflow.
  if (static_cast<int64_t>(input.cluster->nodes.size() *
                           input.costs->layers.size()) > most) {
    return {};
  }
  return Adviser(input, plan).Advise();
}

}  // namespace millrace::planner
