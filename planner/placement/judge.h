#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/placement/problem.h"

namespace millrace::planner::placement {

// A route and what the objective compares of it.
struct Candidate {
  Route route;
  Measures measures;
};

// Measures routes, each from scratch, and keeps the best of them. Routes given
// to it cover all layers in order. Keeps work space between calls: one thread.
class Judge {
 public:
  explicit Judge(const Problem& problem);

  // Nothing where a node lacks memory, or a rule is broken.
  std::optional<Measures> Measure(std::span<const RouteEntry> route);
  // Takes the route if it fits and is better than the best so far.
  bool Offer(const Route& route);
  bool Offer(const std::optional<Route>& route) {
    return route.has_value() && Offer(*route);
  }
  [[nodiscard]] const std::optional<Candidate>& best() const { return best_; }

  [[nodiscard]] int Compare(const Measures& a, const Measures& b) const {
    return planner::Compare(problem_.criteria(), a, b);
  }

 private:
  struct NodeSum {
    Bytes weights = 0;
    Bytes need = 0;
    double seconds = 0;
    bool first = false;
    bool last = false;
    bool used = false;
    std::vector<LayerRun> runs;  // only where scratch depends on them
  };
  void SumNodes(std::span<const RouteEntry> route);
  bool Fits(Measures& measures) const;
  void AddTimes(std::span<const RouteEntry> route, Measures& measures);
  void AddTimesOfRows(std::span<const RouteEntry> route, Measures& measures);
  double SlowestLink(std::span<const RouteEntry> route, double* loop_s);

  const Problem& problem_;
  const bool has_scratch_;
  std::vector<NodeSum> sums_;     // [nodes], all unused between calls
  std::vector<int64_t> touched_;  // nodes in use, in order
  struct HopUse {
    int64_t from = 0;
    int64_t to = 0;
    double seconds = 0;
  };
  std::vector<HopUse> hops_;
  Route merged_;
  std::optional<Candidate> best_;
};

}  // namespace millrace::planner::placement
