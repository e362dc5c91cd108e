#include "planner/cost_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/expert_cache.h"

namespace millrace::planner {
namespace {

// Positions that a layer keeps of a sequence of `context`.
int64_t PositionsKept(const ModelCosts& costs, const LayerCost& layer,
                      int64_t context) {
  const int64_t block = std::max<int64_t>(1, costs.kv_block_positions);
  const int64_t all = (context + block - 1) / block * block;
  return layer.kv_positions_max == 0 ? all
                                     : std::min(all, layer.kv_positions_max);
}

absl::int128 SequenceBytesOf(const ModelCosts& costs, const LayerCost& layer,
                             int64_t context) {
  return absl::int128(layer.kv_per_token) *
             PositionsKept(costs, layer, context) +
         layer.state_per_sequence;
}

template <typename T>
T Between(const std::vector<T>& prefix, LayerRun run) {
  return prefix[static_cast<size_t>(run.end)] -
         prefix[static_cast<size_t>(run.begin)];
}

}  // namespace

PassCost& PassCost::operator+=(const PassCost& other) {
  fixed_s += other.fixed_s;
  row_s += other.row_s;
  for (size_t i = 0; i < expert_s.size(); ++i) {
    expert_s[i] += other.expert_s[i];
  }
  return *this;
}

CostModel::CostModel(const ModelCosts& costs, const Cluster& cluster,
                     int64_t context, ScratchFunction scratch)
    : costs_(costs),
      cluster_(cluster),
      context_(context),
      scratch_(std::move(scratch)),
      weights_{0},
      kv_{0},
      state_{0},
      sequence_{0},
      bytes_{0} {
  const size_t layers = costs.layers.size();
  formats_.push_back({"", std::vector<double>(layers + 1, 0)});
  for (size_t i = 0; i < layers; ++i) {
    const LayerCost& layer = costs.layers[i];
    int64_t weights = layer.weights_bytes;
    double bytes = layer.bytes_per_token;
    double end_flops = 0;
    if (i == 0) {
      weights += costs.first.weights_bytes;
      bytes += costs.first.bytes_per_token;
      end_flops += costs.first.flops_per_token;
    }
    if (i + 1 == layers) {
      weights += costs.last.weights_bytes;
      bytes += costs.last.bytes_per_token;
      end_flops += costs.last.flops_per_token;
    }
    weights_.push_back(weights_.back() + weights);
    kv_.push_back(kv_.back() +
                  (layer.kv_positions_max == 0 ? layer.kv_per_token : 0));
    state_.push_back(state_.back() + layer.state_per_sequence);
    sequence_.push_back(sequence_.back() +
                        SequenceBytesOf(costs, layer, context));
    bytes_.push_back(bytes_.back() + bytes);
    AddFlops(i, end_flops);
    AddExperts(i);
  }
  FillRates();
  for (size_t i = 0; i < cluster.links.size(); ++i) {
    const NodePairLink& link = cluster.links[i];
    links_.emplace(std::minmax(link.node_a, link.node_b),
                   static_cast<int64_t>(i));
  }
}

void CostModel::AddFlops(size_t layer, double flops) {
  const LayerCost& cost = costs_.layers[layer];
  auto format = std::find_if(
      formats_.begin(), formats_.end(),
      [&](const FormatSum& sum) { return sum.format == cost.format; });
  if (format == formats_.end()) {
    formats_.push_back(
        {cost.format, std::vector<double>(costs_.layers.size() + 1, 0)});
    format = formats_.end() - 1;
  }
  for (FormatSum& sum : formats_) {
    sum.flops[layer + 1] = sum.flops[layer];
  }
  format->flops[layer + 1] += cost.flops_per_token;
  formats_.front().flops[layer + 1] += flops;
}

void CostModel::AddExperts(size_t layer) {
  const ExpertCost& experts = costs_.layers[layer].experts;
  const auto same = [&](const ExpertClass& known) {
    return known.count == experts.count && known.used == experts.used;
  };
  if (experts.count > 0 &&
      std::none_of(classes_.begin(), classes_.end(), same)) {
    classes_.push_back({experts.count, experts.used,
                        std::vector<double>(costs_.layers.size() + 1, 0)});
    // (1 - used / count)^rows < e^-40 is lost in the rounding of what is read.
    rows_that_read_all_ =
        std::max(rows_that_read_all_,
                 1 + 40 * experts.count / std::max<int64_t>(1, experts.used));
  }
  for (ExpertClass& known : classes_) {
    known.bytes[layer + 1] =
        known.bytes[layer] +
        (experts.count > 0 && same(known) ? experts.bytes_each : 0);
  }
}

void CostModel::FillRates() {
  for (const Node& node : cluster_.nodes) {
    for (const FormatSum& sum : formats_) {
      rates_.push_back(node.ComputeRate(sum.format).value_or(0));
    }
  }
}

int64_t CostModel::WeightsBytes(LayerRun run) const {
  return WeightsBytes(std::span<const LayerRun>(&run, 1));
}

int64_t CostModel::WeightsBytes(std::span<const LayerRun> runs) const {
  int64_t bytes = 0;
  bool first = false;
  bool last = false;
  for (const LayerRun& run : runs) {
    bytes += Between(weights_, run);
    first = first || run.begin == 0;
    last = last || run.end == num_layers();
  }
  return bytes - (first && last ? costs_.shared_weights_bytes : 0);
}

int64_t CostModel::ScratchBytes(std::span<const LayerRun> runs) const {
  return scratch_ ? scratch_(runs) : 0;
}

int64_t CostModel::KvBytesPerToken(LayerRun run) const {
  return Between(kv_, run);
}

int64_t CostModel::StateBytes(LayerRun run) const {
  return Between(state_, run);
}

absl::int128 CostModel::SequenceBytes(LayerRun run) const {
  return Between(sequence_, run);
}

absl::int128 CostModel::SequenceBytesAt(LayerRun run, int64_t context) const {
  if (context == context_) {
    return SequenceBytes(run);
  }
  absl::int128 bytes = 0;
  for (int64_t layer = run.begin; layer < run.end; ++layer) {
    bytes += SequenceBytesOf(costs_, costs_.layers[static_cast<size_t>(layer)],
                             context);
  }
  return bytes;
}

int64_t CostModel::Available(int64_t node) const {
  return cluster_.nodes[static_cast<size_t>(node)].memory_bytes -
         cluster_.reserve_bytes;
}

bool CostModel::Fits(int64_t node, std::span<const LayerRun> runs,
                     int64_t sequences) const {
  absl::int128 need = absl::int128(WeightsBytes(runs)) + ScratchBytes(runs);
  for (const LayerRun& run : runs) {
    need += SequenceBytes(run) * sequences;
  }
  return need <= Available(node);
}

bool CostModel::Allows(int64_t node, LayerRun run) const {
  const Node& hardware = cluster_.nodes[static_cast<size_t>(node)];
  for (const Constraint& constraint : cluster_.constraints) {
    if (!constraint.first_layer.has_value() ||
        *constraint.last_layer < run.begin ||
        *constraint.first_layer >= run.end) {
      continue;
    }
    for (const auto& [key, value] : constraint.labels) {
      const auto label = hardware.labels.find(key);
      if (label == hardware.labels.end() || label->second != value) {
        return false;
      }
    }
  }
  return true;
}

std::string CostModel::MissingRate(int64_t node, LayerRun run) const {
  const Node& hardware = cluster_.nodes[static_cast<size_t>(node)];
  if (!hardware.memory_bandwidth.has_value() && Between(bytes_, run) > 0) {
    return "memory_bandwidth";
  }
  for (size_t i = 0; i < formats_.size(); ++i) {
    if (RateOf(node, i) == 0 && Between(formats_[i].flops, run) > 0) {
      return absl::StrCat("compute.", kComputeDefault);
    }
  }
  return "";
}

std::optional<PassCost> CostModel::Pass(int64_t node, LayerRun run) const {
  const Node& hardware = cluster_.nodes[static_cast<size_t>(node)];
  PassCost pass;
  // One row reads its experts, so that a layer that has some reads bytes.
  if (const double bytes = Between(bytes_, run); bytes > 0) {
    if (!hardware.memory_bandwidth.has_value()) {
      return std::nullopt;
    }
    pass.fixed_s = bytes / *hardware.memory_bandwidth;
    for (size_t i = 0; i < classes_.size(); ++i) {
      pass.expert_s[i] =
          Between(classes_[i].bytes, run) / *hardware.memory_bandwidth;
    }
  }
  for (size_t i = 0; i < formats_.size(); ++i) {
    if (const double flops = Between(formats_[i].flops, run); flops > 0) {
      const double rate = RateOf(node, i);
      if (rate == 0) {
        return std::nullopt;
      }
      pass.row_s += flops / rate;
    }
  }
  return pass;
}

double CostModel::Seconds(const PassCost& pass, int64_t rows) const {
  double seconds = pass.fixed_s + static_cast<double>(rows) * pass.row_s;
  for (size_t i = 0; i < classes_.size(); ++i) {
    seconds += pass.expert_s[i] *
               ExpertsBeyondOne(classes_[i].count, classes_[i].used, rows);
  }
  return seconds;
}

double CostModel::FixedSecondsOfMany(const PassCost& pass) const {
  double seconds = pass.fixed_s;
  for (size_t i = 0; i < classes_.size(); ++i) {
    seconds += pass.expert_s[i] *
               static_cast<double>(classes_[i].count - classes_[i].used);
  }
  return seconds;
}

double CostModel::NominalCost(LayerRun run) const {
  constexpr double kOperationsPerByte = 10;
  double flops = 0;
  for (const FormatSum& sum : formats_) {
    flops += Between(sum.flops, run);
  }
  return Between(bytes_, run) + flops / kOperationsPerByte;
}

const Link& CostModel::LinkBetween(int64_t a, int64_t b) const {
  const auto found = links_.find(std::minmax(a, b));
  return found == links_.end()
             ? cluster_.link_default
             : cluster_.links[static_cast<size_t>(found->second)].link;
}

double CostModel::CutBytes(int64_t layer) const {
  return static_cast<double>(costs_.hidden_bytes) *
         static_cast<double>(costs_.layers[static_cast<size_t>(layer)].vectors);
}

}  // namespace millrace::planner
