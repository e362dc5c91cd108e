#include "planner/placement/problem.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "planner/expert_cache.h"

namespace millrace::planner::placement {
namespace {

// Up to so many layers the scratch of every run is asked for; beyond, that of
// the whole model stands for all.
constexpr int64_t kScratchLayersMax = 512;

// A processor does about ten operations in the time it reads a byte of weights.
constexpr double kBytesPerOperation = 0.1;

// Bytes that `rows` rows read of a layer: those of one row and the further
// experts that the others choose.
double BytesRead(const LayerCost& layer, int64_t rows) {
  double bytes = layer.bytes_per_token;
  if (layer.experts.count > 0) {
    bytes += layer.experts.bytes_each *
             ExpertsBeyondOne(layer.experts.count, layer.experts.used, rows);
  }
  return bytes;
}

std::vector<std::string> FormatsOf(const ModelCosts& costs) {
  std::vector<std::string> formats = {""};
  for (const LayerCost& layer : costs.layers) {
    if (std::find(formats.begin(), formats.end(), layer.format) ==
        formats.end()) {
      formats.push_back(layer.format);
    }
  }
  return formats;
}

// Beyond it no plan is of use; its sums and products stay finite.
constexpr double kSlowest = 1e15;  // seconds a byte or an operation

using Labels = std::map<std::string, std::string>;

bool Carries(const Labels& labels, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = labels.find(label.first);
    return found != labels.end() && found->second == label.second;
  });
}

// For every layer the first one from there on that a node with these labels may
// not hold; [layers + 1].
std::vector<int64_t> FirstForbidden(const std::vector<Constraint>& rules,
                                    const Labels& labels, int64_t layers) {
  const auto index = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<int64_t> broken(index(layers + 1), 0);  // rules that begin here
  for (const Constraint& rule : rules) {
    if (rule.first_layer.has_value() && *rule.first_layer < layers &&
        !Carries(labels, rule.labels)) {
      ++broken[index(*rule.first_layer)];
      --broken[index(std::min(layers - 1, *rule.last_layer) + 1)];
    }
  }
  std::vector<int64_t> from(index(layers + 1), layers);
  for (int64_t layer = 1; layer <= layers; ++layer) {
    broken[index(layer)] += broken[index(layer - 1)];
  }
  for (int64_t layer = layers - 1; layer >= 0; --layer) {
    from[index(layer)] =
        broken[index(layer)] > 0 ? layer : from[index(layer + 1)];
  }
  return from;
}

}  // namespace

Problem::Problem(const CostModel& model, const std::vector<Criterion>& criteria,
                 std::optional<int64_t> concurrency, Speeds speeds)
    : model_(model),
      criteria_(criteria),
      concurrency_(concurrency),
      speeds_(speeds),
      layers_(model.num_layers()),
      weights_{0},
      need_{0} {
  for (const Criterion criterion : criteria) {
    timed_ = timed_ || (criterion != Criterion::kNodesUsed &&
                        criterion != Criterion::kSequences);
  }
  const int64_t spare = model.cluster().SpareNodes();
  nodes_max_ =
      std::min(layers_, model.num_nodes() - std::min(spare, model.num_nodes()));
  SumLayers();
  FillKinds();
  default_link_ = TimesOf(model.cluster().link_default);
  equal_links_ = model.cluster().links.empty();
}

void Problem::SumLayers() {
  for (int64_t layer = 0; layer < layers_; ++layer) {
    const LayerRun run = {layer, layer + 1};
    // What exceeds every memory is cut there, so that products stay in range.
    const Bytes most = Bytes(1) << 63;
    weights_.push_back(weights_.back() + model_.WeightsBytes(run));
    need_.push_back(need_.back() + std::min(most, model_.SequenceBytes(run)));
  }
  shared_weights_ = layers_ > 1 ? model_.costs().shared_weights_bytes : 0;
  const LayerRun all = {0, layers_};
  scratch_most_ = model_.ScratchBytes(std::span<const LayerRun>(&all, 1));
  has_scratch_ = scratch_most_ > 0;
  if (has_scratch_ && layers_ <= kScratchLayersMax) {
    run_scratch_.resize(static_cast<size_t>((layers_ + 1) * (layers_ + 1)), -1);
  }
}

std::vector<size_t> Problem::FillRules() {
  // Kinds of labels are few where nodes are many.
  std::map<std::map<std::string, std::string>, size_t> known;
  std::map<std::vector<int64_t>, size_t> patterns;
  std::vector<size_t> of_node;
  for (const Node& node : model_.cluster().nodes) {
    const auto [found, is_new] = known.emplace(node.labels, 0);
    if (is_new) {
      std::vector<int64_t> forbidden =
          FirstForbidden(model_.cluster().constraints, node.labels, layers_);
      const auto pattern = patterns.emplace(forbidden, forbidden_from_.size());
      if (pattern.second) {
        forbidden_from_.push_back(std::move(forbidden));
      }
      found->second = pattern.first->second;
    }
    of_node.push_back(found->second);
  }
  return of_node;
}

void Problem::FillKinds() {
  const std::vector<size_t> rules = FillRules();
  std::vector<int64_t> named(static_cast<size_t>(model_.num_nodes()), -1);
  for (const NodePairLink& pair : model_.cluster().links) {
    named[Index(pair.node_a)] = pair.node_a;
    named[Index(pair.node_b)] = pair.node_b;
  }
  const std::vector<std::string> formats = FormatsOf(model_.costs());
  using Key =
      std::tuple<int64_t, double, std::vector<double>, double, size_t, int64_t>;
  std::map<Key, size_t> places;
  for (int64_t i = 0; i < model_.num_nodes(); ++i) {
    const Node& node = model_.cluster().nodes[Index(i)];
    NodeKind kind;
    kind.room = model_.Available(i);
    kind.rules = rules[Index(i)];
    kind.op_s.resize(formats.size(), 0);
    if (speeds_ == Speeds::kEqual) {
      kind.byte_s = 1;
      kind.op_s.assign(formats.size(), kBytesPerOperation);
      kind.power_w = 1;
    } else if (timed_) {
      kind.byte_s =
          node.memory_bandwidth.has_value() ? 1 / *node.memory_bandwidth : 0;
      for (size_t format = 0; format < formats.size(); ++format) {
        const auto rate = node.ComputeRate(formats[format]);
        kind.op_s[format] =
            rate.has_value() ? std::min(kSlowest, 1 / *rate) : 0;
      }
      kind.power_w = node.power_w.value_or(0);
    }
    const Key key = {-node.memory_bytes, kind.byte_s, kind.op_s,
                     kind.power_w,       kind.rules,  named[Index(i)]};
    const auto [found, is_new] = places.emplace(key, kinds_.size());
    if (is_new) {
      kinds_.push_back(std::move(kind));
    }
    kinds_[found->second].nodes.push_back(i);
    kind_of_.push_back(found->second);
  }
}

Problem::LinkTimes Problem::TimesOf(const Link& link) const {
  if (!timed_ || speeds_ == Speeds::kEqual) {
    return {};
  }
  return {
      link.bandwidth.has_value() ? std::min(kSlowest, 1 / *link.bandwidth) : 0,
      link.latency_s.value_or(0)};
}

Problem::LinkTimes Problem::LinkBetween(int64_t a, int64_t b) const {
  return equal_links_ ? default_link_ : TimesOf(model_.LinkBetween(a, b));
}

double Problem::CycleOf(const Route& route, const RowCosts& costs) const {
  double cycle = 0;
  for (size_t i = 0; i < route.size(); ++i) {
    const int64_t begin = route[i].first_layer;
    cycle = std::max(cycle, Seconds(kind(kind_of(route[i].node)), costs, begin,
                                    route[i].last_layer + 1));
    if (i > 0) {
      cycle = std::max(
          cycle, costs.hop_bytes[Index(begin)] *
                     LinkBetween(route[i - 1].node, route[i].node).byte_s);
    }
  }
  return cycle;
}

Bytes Problem::RunBytes(int64_t begin, int64_t end, int64_t n) const {
  const bool whole = begin == 0 && end == layers_;
  // Beyond 2^63 nothing fits: the product stays in range.
  const Bytes need = std::min(Need(begin, end), Bytes(1) << 63);
  Bytes bytes =
      Weights(begin, end) + need * n - (whole ? shared_weights_ : Bytes(0));
  if (!has_scratch_) {
    return bytes;
  }
  if (run_scratch_.empty()) {
    return bytes + scratch_most_;
  }
  int64_t& scratch = run_scratch_[Index(begin * (layers_ + 1) + end)];
  if (scratch < 0) {
    const LayerRun run = {begin, end};
    scratch = model_.ScratchBytes(std::span<const LayerRun>(&run, 1));
  }
  return bytes + scratch;
}

const Problem::RowCosts& Problem::At(int64_t rows) const {
  if (rows == rows_of_costs_) {
    return row_costs_;
  }
  const ModelCosts& costs = model_.costs();
  const std::vector<std::string> formats = FormatsOf(costs);
  const double factor = timed_ ? static_cast<double>(rows) : 0;
  const size_t layers = Index(layers_);
  row_costs_ = {};
  row_costs_.bytes.resize(layers + 1, 0);
  row_costs_.ops.resize(formats.size(), std::vector<double>(layers + 1, 0));
  for (size_t i = 0; i < layers; ++i) {
    const LayerCost& layer = costs.layers[i];
    double bytes = BytesRead(layer, rows);
    double end_ops = 0;
    if (i == 0) {
      bytes += costs.first.bytes_per_token;
      end_ops += costs.first.flops_per_token;
    }
    if (i + 1 == layers) {
      bytes += costs.last.bytes_per_token;
      end_ops += costs.last.flops_per_token;
    }
    row_costs_.bytes[i + 1] = row_costs_.bytes[i] + (timed_ ? bytes : 0);
    for (size_t format = 0; format < formats.size(); ++format) {
      const double ops =
          (format == 0 ? end_ops : 0) +
          (formats[format] == layer.format ? layer.flops_per_token : 0);
      row_costs_.ops[format][i + 1] = row_costs_.ops[format][i] + factor * ops;
    }
    row_costs_.hop_bytes.push_back(factor *
                                   model_.CutBytes(static_cast<int64_t>(i)));
  }
  rows_of_costs_ = rows;
  return row_costs_;
}

}  // namespace millrace::planner::placement
