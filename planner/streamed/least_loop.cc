#include "planner/streamed/least_loop.h"

#include <algorithm>
#include <limits>

namespace millrace::planner::streamed {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Choices times kinds times pairs of layers: a quarter of a second.
constexpr double kWorkMax = 50e6;

class LoopTable {
 public:
  LoopTable(const StreamedNodes& nodes, const std::vector<NodeKind>& kinds,
            const NodeChoices& choices)
      : nodes_(nodes),
        kinds_(kinds),
        choices_(choices),
        ends_(static_cast<size_t>(nodes.model().num_layers()) + 1),
        best_(static_cast<size_t>(choices.size()) * ends_, kInfinity) {
    best_[0] = 0;
  }

  std::optional<Route> Find(int64_t nodes_max) {
    FillRuns();
    for (int64_t choice = 1; choice < choices_.size(); ++choice) {
      for (size_t kind = 0; kind < kinds_.size(); ++kind) {
        if (const int64_t from = choices_.Without(choice, kind); from >= 0) {
          Extend(from, kind, choice);
        }
      }
    }
    const double back =
        nodes_.model().cluster().link_default.latency_s.value_or(0);
    double least = kInfinity;
    int64_t best = -1;
    for (int64_t choice = 1; choice < choices_.size(); ++choice) {
      const int64_t count = choices_.count(choice);
      const double loop = At(choice, ends_ - 1) + (count > 1 ? back : 0);
      if (count <= nodes_max && loop < least) {
        least = loop;
        best = choice;
      }
    }
    return best < 0 ? std::nullopt : std::optional<Route>(RouteOf(best));
  }

 private:
  double& At(int64_t choice, size_t end) {
    return best_[static_cast<size_t>(choice) * ends_ + end];
  }
  [[nodiscard]] double Run(size_t kind, size_t begin, size_t end) const {
    return runs_[(kind * ends_ + begin) * ends_ + end];
  }

  // Seconds of every run on every kind, with the hop to it.
  void FillRuns() {
    runs_.assign(kinds_.size() * ends_ * ends_, kInfinity);
    const Link& link = nodes_.model().cluster().link_default;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      const int64_t node = kinds_[kind].nodes.front();
      for (size_t begin = 0; begin + 1 < ends_; ++begin) {
        const auto first = static_cast<int64_t>(begin);
        double hop = 0;
        if (begin > 0) {
          const double bytes = nodes_.model().CutBytes(first);
          hop = link.latency_s.value_or(0) +
                (bytes > 0 ? bytes / link.bandwidth.value_or(kInfinity) : 0);
        }
        const auto& forbidden = kinds_[kind].forbidden_from;
        const size_t most = forbidden.empty()
                                ? ends_ - 1
                                : static_cast<size_t>(forbidden[begin]);
        for (size_t end = begin + 1; end <= most; ++end) {
          const LayerRun run = {first, static_cast<int64_t>(end)};
          const std::optional<Holding> holding = nodes_.Hold(node, run);
          if (!holding.has_value()) {
            break;
          }
          runs_[(kind * ends_ + begin) * ends_ + end] =
              hop + nodes_.Seconds(node, run, *holding, 1).value_or(kInfinity);
        }
      }
    }
  }

  void Extend(int64_t from, size_t kind, int64_t to) {
    for (size_t begin = 0; begin + 1 < ends_; ++begin) {
      const double before = At(from, begin);
      if (before == kInfinity) {
        continue;
      }
      for (size_t end = begin + 1; end < ends_; ++end) {
        At(to, end) = std::min(At(to, end), before + Run(kind, begin, end));
      }
    }
  }

  Route RouteOf(int64_t choice) {
    Route route;
    std::vector<size_t> used(kinds_.size(), 0);
    size_t end = ends_ - 1;
    while (choice > 0) {
      const auto step = [&]() {
        for (size_t kind = 0; kind < kinds_.size(); ++kind) {
          const int64_t from = choices_.Without(choice, kind);
          for (size_t begin = 0; from >= 0 && begin < end; ++begin) {
            if (At(from, begin) + Run(kind, begin, end) == At(choice, end)) {
              route.push_back({kinds_[kind].nodes[used[kind]++],
                               static_cast<int64_t>(begin),
                               static_cast<int64_t>(end) - 1});
              choice = from;
              end = begin;
              return;
            }
          }
        }
      };
      step();
    }
    std::reverse(route.begin(), route.end());
    return route;
  }

  const StreamedNodes& nodes_;
  const std::vector<NodeKind>& kinds_;
  const NodeChoices& choices_;
  const size_t ends_;         // layers + 1
  std::vector<double> best_;  // [choices][layers + 1], all of whose nodes work
  std::vector<double> runs_;  // [kinds][layers + 1][layers + 1]
};

}  // namespace

std::optional<Route> LeastLoop(const StreamedNodes& nodes,
                               const std::vector<NodeKind>& kinds,
                               const NodeChoices& choices, int64_t nodes_max) {
  const auto layers = static_cast<double>(nodes.model().num_layers());
  const auto work = static_cast<double>(choices.size()) *
                    static_cast<double>(kinds.size()) * layers * layers;
  return work > kWorkMax ? std::nullopt
                         : LoopTable(nodes, kinds, choices).Find(nodes_max);
}

}  // namespace millrace::planner::streamed
