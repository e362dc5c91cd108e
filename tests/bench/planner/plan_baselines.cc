#include "tests/bench/planner/plan_baselines.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "planner/cluster_codec.h"
#include "planner/costs_codec.h"
#include "planner/plan_numbers.h"

namespace millrace::planner::testing {
namespace {

using Route = std::vector<RouteEntry>;

absl::StatusOr<std::string> ReadExample(const std::string& name) {
  std::ifstream file(std::string(MILLRACE_EXAMPLE_PLANS_DIR) + "/" + name);
  if (!file) {
    return InputError(name, "cannot be read");
  }
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::vector<int64_t>> OrdersOf(const CostModel& model) {
  std::vector<int64_t> ids(static_cast<size_t>(model.num_nodes()));
  std::iota(ids.begin(), ids.end(), 0);
  const auto node = [&](int64_t i) -> const Node& {
    return model.cluster().nodes[static_cast<size_t>(i)];
  };
  std::vector<std::vector<int64_t>> orders(3, ids);
  std::stable_sort(orders[1].begin(), orders[1].end(),
                   [&](int64_t a, int64_t b) {
                     return node(a).memory_bandwidth.value_or(0) >
                            node(b).memory_bandwidth.value_or(0);
                   });
  std::stable_sort(orders[2].begin(), orders[2].end(),
                   [&](int64_t a, int64_t b) {
                     return node(a).memory_bytes > node(b).memory_bytes;
                   });
  for (std::vector<int64_t>& order : orders) {
    order.resize(order.size() -
                 static_cast<size_t>(model.cluster().SpareNodes()));
  }
  return orders;
}

Route Split(const CostModel& model, const std::vector<int64_t>& order,
            const std::function<double(int64_t)>& share) {
  double total = 0;
  for (const int64_t node : order) {
    total += share(node);
  }
  Route route;
  double sum = 0;
  int64_t begin = 0;
  const auto layers = static_cast<double>(model.num_layers());
  for (const int64_t node : order) {
    sum += share(node);
    const auto end = static_cast<int64_t>(std::nearbyint(sum / total * layers));
    if (end > begin) {
      route.push_back({node, begin, end - 1});
      begin = end;
    }
  }
  return route;
}

// As many layers for every node; the first ones hold one more where that does
// not come out even.
Route EvenSplit(const CostModel& model, const std::vector<int64_t>& order) {
  Route route;
  int64_t begin = 0;
  const auto nodes =
      std::min(static_cast<int64_t>(order.size()), model.num_layers());
  for (int64_t i = 0; i < nodes; ++i) {
    const int64_t layers =
        model.num_layers() / nodes + (i < model.num_layers() % nodes ? 1 : 0);
    route.push_back({order[static_cast<size_t>(i)], begin, begin + layers - 1});
    begin += layers;
  }
  return route;
}

// Empty where layers are left over.
Route Fill(const CostModel& model, const std::vector<int64_t>& order,
           std::optional<double> cycle) {
  Route route;
  int64_t begin = 0;
  for (const int64_t node : order) {
    int64_t end = begin;
    while (end < model.num_layers() &&
           model.Fits(node, LayerRun{begin, end + 1}, 1) &&
           (!cycle.has_value() ||
            model.Seconds(*model.Pass(node, {begin, end + 1}), 1) <= *cycle)) {
      ++end;
    }
    if (end > begin) {
      route.push_back({node, begin, end - 1});
      begin = end;
    }
  }
  return begin == model.num_layers() ? route : Route();
}

Route Greedy(const CostModel& model, const std::vector<int64_t>& order,
             bool timed) {
  if (!timed || Fill(model, order, std::nullopt).empty()) {
    return Fill(model, order, std::nullopt);
  }
  double low = 0;
  double high = 1;
  while (Fill(model, order, high).empty()) {
    high *= 2;
  }
  for (int step = 0; step < 40; ++step) {
    const double middle = (low + high) / 2;
    (Fill(model, order, middle).empty() ? low : high) = middle;
  }
  return Fill(model, order, high);
}

void Keep(const CostModel& model, const std::vector<Criterion>& criteria,
          const Route& route, std::optional<Measures>* best) {
  const bool fits =
      !route.empty() &&
      std::all_of(route.begin(), route.end(), [&](const RouteEntry& entry) {
        return model.Fits(entry.node, entry.run(), 1) &&
               model.Allows(entry.node, entry.run());
      });
  if (!fits) {
    return;
  }
  const Measures own = MeasureRoute(model, route, std::nullopt);
  if (!best->has_value() || Compare(criteria, own, **best) < 0) {
    *best = own;
  }
}

}  // namespace

std::vector<PlanExample> PlanExamples() {
  return {
      {"kimi-k3", "8x400gb", 131072},          {"kimi-k3", "8x640gb", 131072},
      {"kimi-k3", "8x1.1tb", 131072},          {"kimi-k3", "4x1.1tb", 131072},
      {"kimi-k3", "three-generations", 32768}, {"dense-28", "uneven", 32768},
      {"dense-28", "office", 32768},
  };
}

absl::StatusOr<ModelCosts> LoadExampleCosts(const std::string& name) {
  const std::string file = name + ".costs.yaml";
  const absl::StatusOr<std::string> text = ReadExample(file);
  return text.ok() ? ParseCosts(*text, file)
                   : absl::StatusOr<ModelCosts>(text.status());
}

absl::StatusOr<Cluster> LoadExampleCluster(const std::string& name) {
  const std::string file = name + ".cluster.yaml";
  const absl::StatusOr<std::string> text = ReadExample(file);
  return text.ok() ? ParseCluster(*text, file)
                   : absl::StatusOr<Cluster>(text.status());
}

Baselines BaselinesOf(const CostModel& model,
                      const std::vector<Criterion>& criteria) {
  const auto all_layers = LayerRun{0, model.num_layers()};
  bool timed = true;
  for (int64_t node = 0; node < model.num_nodes(); ++node) {
    timed = timed && model.Pass(node, all_layers).has_value();
  }
  Baselines baselines;
  for (const std::vector<int64_t>& order : OrdersOf(model)) {
    Keep(model, criteria, EvenSplit(model, order), &baselines.even);
    const auto memory = [&](int64_t node) {
      return static_cast<double>(
          model.cluster().nodes[static_cast<size_t>(node)].memory_bytes);
    };
    Keep(model, criteria, Split(model, order, memory), &baselines.by_memory);
    Keep(model, criteria, Greedy(model, order, timed), &baselines.greedy);
  }
  return baselines;
}

}  // namespace millrace::planner::testing
