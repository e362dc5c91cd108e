#include "planner/streamed/streamed_nodes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "planner/expert_records.h"

namespace millrace::planner::streamed {
namespace {

// Products with numbers of experts stay far below 2^63.
constexpr double kExpertBytesMax = int64_t{1} << 40;

// Scratch of runs of so many layers is remembered: 8 MB.
constexpr int64_t kScratchLayersMax = 1000;

size_t Index(int64_t i) { return static_cast<size_t>(i); }

template <typename T>
T Between(const std::vector<T>& prefix, LayerRun run) {
  return prefix[Index(run.end)] - prefix[Index(run.begin)];
}

// Of the experts of a layer, whole bytes: a mean may not be one.
int64_t ExpertBytes(const LayerCost& layer) {
  const ExpertCost& experts = layer.experts;
  return std::min<int64_t>(
      layer.weights_bytes,
      std::llround(static_cast<double>(experts.count) * experts.bytes_each));
}

// `levels[0]` is given: over runs of 2, 4, 8 ... layers.
void FillLevels(std::vector<std::vector<int64_t>>& levels) {
  const size_t layers = levels[0].size();
  for (size_t half = 1; 2 * half <= layers; half *= 2) {
    const std::vector<int64_t>& below = levels.back();
    std::vector<int64_t> level(layers - 2 * half + 1);
    for (size_t i = 0; i < level.size(); ++i) {
      level[i] = std::max(below[i], below[i + half]);
    }
    levels.push_back(std::move(level));
  }
}

int64_t LargestOf(const std::vector<std::vector<int64_t>>& levels,
                  LayerRun run) {
  const auto length = static_cast<uint64_t>(run.end - run.begin);
  const auto level = static_cast<size_t>(std::bit_width(length) - 1);
  const std::vector<int64_t>& row = levels[level];
  return std::max(row[Index(run.begin)],
                  row[Index(run.end) - (size_t{1} << level)]);
}

}  // namespace

absl::Status CheckExperts(const ModelCosts& costs, absl::string_view object) {
  for (size_t i = 0; i < costs.layers.size(); ++i) {
    const LayerCost& layer = costs.layers[i];
    // Compared as numbers that cannot overflow.
    const double all =
        static_cast<double>(layer.experts.count) * layer.experts.bytes_each;
    if (layer.experts.count > 0 &&
        !(layer.experts.bytes_each <= kExpertBytesMax &&
          all < static_cast<double>(layer.weights_bytes) + 1)) {
      return InputError(
          object,
          absl::StrCat("layers[", i,
                       "].experts: are more bytes than the layer weighs"),
          "make the plan anew with plan --out");
    }
  }
  return absl::OkStatus();
}

StreamedNodes::StreamedNodes(const CostModel& model, int64_t sequences)
    : model_(model),
      sequences_(sequences),
      expert_bytes_{0},
      records_{0},
      record_(1),
      used_(1) {
  for (size_t layer = 0; layer < model.costs().layers.size(); ++layer) {
    AddLayer(layer);
  }
  FillLevels(record_);
  FillLevels(used_);
  if (const int64_t layers = model.num_layers(); layers <= kScratchLayersMax) {
    scratch_.resize(Index((layers + 1) * (layers + 1)), -1);
  }
}

void StreamedNodes::AddLayer(size_t layer) {
  const LayerCost& cost = model_.costs().layers[layer];
  const ExpertCost& experts = cost.experts;
  const int64_t record =
      experts.count > 0
          ? RecordOfKept(static_cast<int64_t>(std::ceil(experts.bytes_each)))
          : 0;
  expert_bytes_.push_back(expert_bytes_.back() + ExpertBytes(cost));
  records_.push_back(records_.back() + experts.count);
  record_[0].push_back(record);
  used_[0].push_back(experts.used);
  const auto same = [&](const RecordClass& known) {
    return known.count == experts.count && known.used == experts.used;
  };
  if (experts.count > 0 &&
      std::none_of(classes_.begin(), classes_.end(), same)) {
    classes_.push_back(
        {experts.count, experts.used, std::vector<double>(layer + 1, 0)});
  }
  for (RecordClass& known : classes_) {
    known.bytes.push_back(
        known.bytes.back() +
        (experts.count > 0 && same(known) ? static_cast<double>(record) : 0));
  }
}

ExpertDemand StreamedNodes::DemandOf(LayerRun run) const {
  return {Between(records_, run), LargestOf(record_, run),
          LargestOf(used_, run)};
}

int64_t StreamedNodes::ScratchBytes(LayerRun run) const {
  if (scratch_.empty()) {
    return model_.ScratchBytes({&run, 1});
  }
  int64_t& known =
      scratch_[Index(run.begin * (model_.num_layers() + 1) + run.end)];
  if (known < 0) {
    known = model_.ScratchBytes({&run, 1});
  }
  return known;
}

int64_t StreamedNodes::TrunkBytes(LayerRun run) const {
  return model_.WeightsBytes(run) - Between(expert_bytes_, run);
}

int64_t StreamedNodes::LayerTrunkBytes(int64_t layer) const {
  return model_.costs().layers[Index(layer)].weights_bytes -
         Between(expert_bytes_, {layer, layer + 1});
}

absl::int128 StreamedNodes::FloorBytes(LayerRun run) const {
  const ExpertDemand demand = DemandOf(run);
  return model_.SequenceBytes(run) * sequences_ + TrunkBytes(run) +
         ScratchBytes(run) + demand.read_buffer_bytes() +
         demand.working_set_bytes();
}

std::optional<Holding> StreamedNodes::Hold(int64_t node, LayerRun run) const {
  const int64_t trunk = TrunkBytes(run);
  const absl::int128 room = absl::int128(model_.Available(node)) - trunk -
                            ScratchBytes(run) -
                            model_.SequenceBytes(run) * sequences_;
  Holding holding;
  holding.demand = DemandOf(run);
  const int64_t experts = Between(expert_bytes_, run);
  if (room >= experts) {
    holding.experts_held = holding.demand.records;
    holding.weights_bytes = trunk + experts;
    return holding;
  }
  const Node& hardware = model_.cluster().nodes[Index(node)];
  if (holding.demand.records == 0 || !hardware.nvme_bandwidth.has_value()) {
    return std::nullopt;
  }
  double disk = static_cast<double>(trunk);
  for (const RecordClass& known : classes_) {
    disk += static_cast<double>(known.count) * Between(known.bytes, run);
  }
  if (hardware.nvme_bytes.has_value() &&
      disk > static_cast<double>(*hardware.nvme_bytes)) {
    return std::nullopt;
  }
  const absl::int128 cache = room - holding.demand.read_buffer_bytes();
  if (cache < holding.demand.working_set_bytes()) {
    return std::nullopt;
  }
  holding.experts_held = holding.demand.CachedRecords(cache);
  holding.hit_share = holding.demand.EvenHitShare(holding.experts_held);
  holding.weights_bytes = trunk + holding.demand.read_buffer_bytes() +
                          holding.experts_held * holding.demand.record_bytes;
  return holding;
}

double StreamedNodes::ReadBytes(LayerRun run, const Holding& holding,
                                int64_t rows) const {
  if (!holding.streams()) {
    return 0;
  }
  double bytes = 0;
  for (const RecordClass& known : classes_) {
    bytes += DistinctExperts(known.count, known.used, rows) *
             Between(known.bytes, run);
  }
  return bytes * (1 - holding.hit_share);
}

double StreamedNodes::ReadSeconds(int64_t node, LayerRun run,
                                  const Holding& holding, int64_t rows) const {
  return holding.streams()
             ? ReadBytes(run, holding, rows) /
                   *model_.cluster().nodes[Index(node)].nvme_bandwidth
             : 0;
}

std::optional<double> StreamedNodes::Seconds(int64_t node, LayerRun run,
                                             const Holding& holding,
                                             int64_t rows) const {
  const std::optional<PassCost> pass = model_.Pass(node, run);
  if (!pass.has_value()) {
    return std::nullopt;
  }
  return model_.Seconds(*pass, rows) + ReadSeconds(node, run, holding, rows);
}

}  // namespace millrace::planner::streamed
