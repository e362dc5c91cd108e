#include "planner/placement/polish.h"

#include <algorithm>
#include <random>
#include <vector>

#include "planner/placement/ordered_fill.h"

namespace millrace::planner::placement {
namespace {

size_t Index(int64_t i) { return static_cast<size_t>(i); }

class Polish {
 public:
  Polish(const Problem& problem, bool interleaved, Judge& judge)
      : problem_(problem),
        interleaved_(interleaved),
        judge_(judge),
        random_(1),
        current_(judge.best()->route),
        measures_(judge.best()->measures) {}

  void Run(int64_t steps_max) {
    // Rows that follow the route are found by bisection.
    const int64_t step = problem_.rows_vary() ? 6 : 1;
    while (steps_max > 0) {
      changed_ = current_;
      const bool change =
          interleaved_ && Random(3) > 0 ? ChangeLayers() : ChangeRuns();
      steps_max -= step * (8 + static_cast<int64_t>(changed_.size()));
      if (!change) {
        continue;
      }
      const std::optional<Measures> own = judge_.Measure(changed_);
      if (!own.has_value() || judge_.Compare(*own, measures_) > 0) {
        continue;
      }
      if (judge_.Compare(*own, measures_) < 0) {
        judge_.Offer(changed_);
      }
      measures_ = *own;
      current_ = Merged(changed_);
    }
  }

 private:
  int64_t Random(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }
  size_t RandomRun() {
    return Index(Random(static_cast<int64_t>(changed_.size())));
  }
  // Any node of any kind, so that rare kinds are met as often as common ones.
  int64_t RandomNode() {
    const NodeKind& kind = problem_.kind(
        Index(Random(static_cast<int64_t>(problem_.kinds().size()))));
    return kind.nodes[Index(
        Random(std::min<int64_t>(kind.count(), problem_.num_layers() + 1)))];
  }
  [[nodiscard]] bool InUse(int64_t node) const {
    return std::any_of(changed_.begin(), changed_.end(),
                       [&](const RouteEntry& run) { return run.node == node; });
  }

  static Route Merged(const Route& route) {
    Route merged;
    for (const RouteEntry& run : route) {
      if (!merged.empty() && merged.back().node == run.node) {
        merged.back().last_layer = run.last_layer;
      } else {
        merged.push_back(run);
      }
    }
    return merged;
  }

  // Changes whole runs and keeps a contiguous route contiguous.
  bool ChangeRuns() {
    switch (Random(5)) {
      case 0:
      case 1:
        return MoveBoundary();
      case 2: {
        const size_t a = RandomRun();
        const size_t b = RandomRun();
        std::swap(changed_[a].node, changed_[b].node);
        return a != b;
      }
      case 3: {
        const int64_t node = RandomNode();
        if (!interleaved_ && InUse(node)) {
          return false;
        }
        changed_[RandomRun()].node = node;
        return true;
      }
      default:
        return Random(2) == 0 ? DropRun() : SplitRun();
    }
  }

  bool MoveBoundary() {
    const size_t right = RandomRun();
    if (right == 0) {
      return false;
    }
    RouteEntry& upstream = changed_[right - 1];
    RouteEntry& downstream = changed_[right];
    const int64_t most = Random(2) == 0 ? 1 : 8;
    int64_t by = 1 + Random(most);
    if (Random(2) == 0) {
      by = std::min(by, upstream.last_layer - upstream.first_layer);
      upstream.last_layer -= by;
      downstream.first_layer -= by;
    } else {
      by = std::min(by, downstream.last_layer - downstream.first_layer);
      upstream.last_layer += by;
      downstream.first_layer += by;
    }
    return by > 0;
  }

  // Its layers go to a neighbour.
  bool DropRun() {
    if (changed_.size() < 2) {
      return false;
    }
    const size_t run = RandomRun();
    if (run > 0 && (run + 1 == changed_.size() || Random(2) == 0)) {
      changed_[run - 1].last_layer = changed_[run].last_layer;
    } else {
      changed_[run + 1].first_layer = changed_[run].first_layer;
    }
    changed_.erase(changed_.begin() + static_cast<ptrdiff_t>(run));
    return true;
  }

  bool SplitRun() {
    const size_t run = RandomRun();
    const int64_t layers = changed_[run].last_layer - changed_[run].first_layer;
    const int64_t node = RandomNode();
    if (layers == 0 || (!interleaved_ && InUse(node))) {
      return false;
    }
    const int64_t cut = changed_[run].first_layer + 1 + Random(layers);
    RouteEntry rest = {node, cut, changed_[run].last_layer};
    changed_[run].last_layer = cut - 1;
    if (Random(2) == 0) {
      std::swap(changed_[run].node, rest.node);
    }
    changed_.insert(changed_.begin() + static_cast<ptrdiff_t>(run) + 1, rest);
    return true;
  }

  // Gives a few layers of a run to another node, or exchanges two layers.
  bool ChangeLayers() {
    const size_t from = RandomRun();
    const size_t other = RandomRun();
    const int64_t node = Random(4) == 0 ? RandomNode() : changed_[other].node;
    const RouteEntry run = changed_[from];
    const int64_t first =
        run.first_layer + Random(run.last_layer - run.first_layer + 1);
    const int64_t last =
        std::min(run.last_layer, first + Random(2) * Random(4));
    if (Random(2) == 0) {
      Assign(first, last, node);
      return true;
    }
    const RouteEntry taken = changed_[other];
    const int64_t layer =
        taken.first_layer + Random(taken.last_layer - taken.first_layer + 1);
    Assign(first, first, taken.node);
    Assign(layer, layer, run.node);
    return taken.node != run.node;
  }

  void Assign(int64_t first, int64_t last, int64_t node) {
    Route out;
    bool placed = false;
    for (const RouteEntry& run : changed_) {
      if (run.last_layer < first || run.first_layer > last) {
        out.push_back(run);
        continue;
      }
      if (run.first_layer < first) {
        out.push_back({run.node, run.first_layer, first - 1});
      }
      if (!placed) {
        out.push_back({node, first, last});
        placed = true;
      }
      if (run.last_layer > last) {
        out.push_back({run.node, last + 1, run.last_layer});
      }
    }
    changed_.swap(out);
  }

  const Problem& problem_;
  const bool interleaved_;
  Judge& judge_;
  std::mt19937_64 random_;
  Route current_;
  Route changed_;
  Measures measures_;
};

}  // namespace

void PolishRoute(const Problem& problem, bool interleaved, int64_t steps_max,
                 Judge& judge) {
  if (judge.best().has_value()) {
    Polish(problem, interleaved, judge).Run(steps_max);
  }
}

}  // namespace millrace::planner::placement
