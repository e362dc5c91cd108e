#include "planner/single_node.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "model/spec/stage_memory.h"
#include "planner/expert_cache.h"

namespace millrace::planner {
namespace {

double AsDouble(int64_t value) { return static_cast<double>(value); }

// Routing of Kimi-Linear-48B, 300 tokens, 6,656 experts of which a token wants
// 208; a cache that keeps a decayed count for every expert, half-life 16
// tokens. Slots as a share of the experts, hits as a share of the wanted ones.
struct HitPoint {
  double cached;
  double hits;
};
constexpr std::array<HitPoint, 8> kMeasuredHits = {{{0, 0},
                                                    {99 / 6656.0, 0.21},
                                                    {199 / 6656.0, 0.31},
                                                    {399 / 6656.0, 0.43},
                                                    {798 / 6656.0, 0.57},
                                                    {1597 / 6656.0, 0.73},
                                                    {3194 / 6656.0, 0.86},
                                                    {1, 1}}};

ExpertDemand DemandOf(const ModelSheet& sheet,
                      const SingleNodeOptions& options) {
  ExpertDemand demand;
  for (const LayerSheet& layer : sheet.layers) {
    demand.records += layer.experts;
    demand.record_bytes =
        std::max(demand.record_bytes, RecordBytes(layer, options.experts));
    demand.used_most = std::max(demand.used_most, layer.experts_used);
  }
  return demand;
}

MemoryFloor FloorOf(const ModelSheet& sheet, const SingleNodeOptions& options) {
  MemoryFloor floor;
  const auto trunk = [&](const PartSheet& part) {
    floor.trunk_bytes +=
        TotalsOf(Requantised(part, options.trunk)).weights_bytes;
  };
  trunk(sheet.first);
  PartSheet last = sheet.last;
  if (sheet.head_is_embedding) {
    last.matrices.erase(last.matrices.begin());
  }
  trunk(last);
  constexpr int64_t kBlock = model::kKvBlockPositions;
  const int64_t positions = (options.context + kBlock - 1) / kBlock * kBlock;
  for (const LayerSheet& layer : sheet.layers) {
    trunk(layer.weights);
    trunk(layer.tables);
    floor.trunk_bytes += CodebookBytes(layer, options.experts);
    const int64_t most =
        KvPositionsMax(layer.window, options.shape.prefill_chunk);
    floor.kv_bytes += options.sequences *
                      (most > 0 ? std::min(most, positions) : positions) *
                      KvBytesPerToken(layer, options.shape.kv);
    floor.state_bytes += options.sequences * StateBytes(layer);
  }
  const ExpertDemand demand = DemandOf(sheet, options);
  floor.scratch_bytes = options.scratch_bytes;
  floor.read_buffer_bytes = demand.read_buffer_bytes();
  floor.working_set_bytes = demand.working_set_bytes();
  return floor;
}

// Of a token: what it reads from memory, trunk and chosen experts.
double MemoryBytesPerToken(const ModelSheet& sheet,
                           const SingleNodeOptions& options) {
  double bytes = TotalsOf(Requantised(sheet.last, options.trunk)).read_bytes;
  for (const LayerSheet& layer : sheet.layers) {
    bytes += TotalsOf(Requantised(layer.weights, options.trunk)).read_bytes +
             AsDouble(layer.experts_used * RecordBytes(layer, options.experts));
  }
  return bytes;
}

void CountRecords(const ModelSheet& sheet, const SingleNodeOptions& options,
                  SingleNodePlan& plan) {
  plan.bundle_bytes = plan.floor.trunk_bytes;
  const ExpertDemand demand = DemandOf(sheet, options);
  plan.records = demand.records;
  plan.record_bytes = demand.record_bytes;
  for (const LayerSheet& layer : sheet.layers) {
    const int64_t bytes = RecordBytes(layer, options.experts);
    plan.records_per_token += layer.experts_used;
    plan.cold_bytes_per_token += layer.experts_used * bytes;
    plan.bundle_bytes += layer.experts * bytes;
  }
}

void FillCache(const ModelSheet& sheet, const SingleNodeOptions& options,
               SingleNodePlan& plan) {
  const ExpertDemand demand = DemandOf(sheet, options);
  if (plan.records == 0) {
    plan.hit_rate = {1, 1};
    return;
  }
  const int64_t room =
      options.memory_bytes - plan.floor.total() + plan.floor.working_set_bytes;
  plan.cache_records = demand.CachedRecords(room);
  plan.cache_bytes = plan.cache_records * plan.record_bytes;
  const double share = demand.EvenHitShare(plan.cache_records);
  plan.hit_rate = {share, std::max(share, MeasuredHitRate(share))};
  const double cold = AsDouble(plan.cold_bytes_per_token);
  plan.bytes_per_token = {cold * (1 - plan.hit_rate.high),
                          cold * (1 - plan.hit_rate.low)};
}

void FillSpeed(const SingleNodeOptions& options, SingleNodePlan& plan) {
  Range read = {0, 0};
  if (plan.bytes_per_token.high > 0) {
    if (!options.nvme_bandwidth.has_value()) {
      return;
    }
    read = {plan.bytes_per_token.low / *options.nvme_bandwidth,
            plan.bytes_per_token.high / *options.nvme_bandwidth};
  }
  const double memory =
      options.memory_bandwidth.has_value()
          ? plan.memory_bytes_per_token / *options.memory_bandwidth
          : 0;
  // Between reading while resident experts compute, and one after the other.
  const double fastest = std::max(read.low, memory);
  const double slowest = read.high + memory;
  if (fastest > 0) {
    plan.tokens_per_s = Range{1 / slowest, 1 / fastest};
  }
}

std::string SpeedText(const SingleNodeOptions& options,
                      const SingleNodePlan& plan) {
  if (!plan.tokens_per_s.has_value()) {
    return "";
  }
  return absl::StrFormat("%s%.2g to %.2g tokens/s",
                         options.memory_bandwidth.has_value()
                             ? ", about "
                             : ", as far as reading allows ",
                         plan.tokens_per_s->low, plan.tokens_per_s->high);
}

std::string WhyYes(const SingleNodeOptions& options,
                   const SingleNodePlan& plan) {
  std::string text =
      absl::StrCat("fits: ", HumanSize(options.memory_bytes),
                   " hold the floor of ", HumanSize(plan.floor.total()));
  if (plan.records > 0) {
    absl::StrAppendFormat(&text,
                          " and a cache of %d of %s (%s), %.0f to %.0f %% hits",
                          plan.cache_records, Counted(plan.records, "expert"),
                          HumanSize(plan.cache_bytes), 100 * plan.hit_rate.low,
                          100 * plan.hit_rate.high);
  }
  return absl::StrCat(text, SpeedText(options, plan));
}

std::string WhyNot(const SingleNodeOptions& options, const MemoryFloor& floor) {
  return absl::StrCat(
      "does not fit: the floor is ", HumanSize(floor.total()), " (",
      floor.total(), " bytes): trunk ", HumanSize(floor.trunk_bytes), ", KV ",
      HumanSize(floor.kv_bytes), ", state ", HumanSize(floor.state_bytes),
      ", scratch ", HumanSize(floor.scratch_bytes), ", read buffers ",
      HumanSize(floor.read_buffer_bytes), ", one layer's experts ",
      HumanSize(floor.working_set_bytes), "; ", HumanSize(options.memory_bytes),
      " were given, ", HumanSize(floor.total() - options.memory_bytes),
      " are missing");
}

// The longest context, in whole KV blocks, with which the floor is within the
// budget; 0: none.
int64_t LongestContext(const ModelSheet& sheet, SingleNodeOptions options) {
  int64_t low = 0;  // in blocks; fits, or nothing does
  int64_t high = options.context / model::kKvBlockPositions;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    options.context = middle * model::kKvBlockPositions;
    if (FloorOf(sheet, options).total() <= options.memory_bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low * model::kKvBlockPositions;
}

// Changes that would fit by themselves, the least harmful first; then memory.
void AddAdvice(const ModelSheet& sheet, const SingleNodeOptions& options,
               SingleNodePlan& plan) {
  const auto try_change = [&](const SingleNodeOptions& changed,
                              const std::string& change) {
    const int64_t floor = FloorOf(sheet, changed).total();
    if (floor <= options.memory_bytes) {
      plan.advice.push_back({change, absl::StrCat("floor ", HumanSize(floor)),
                             AsDouble(plan.floor.total() - floor)});
    }
  };
  SingleNodeOptions changed = options;
  if (options.sequences > 1) {
    changed.sequences = 1;
    try_change(changed, "--concurrency 1");
  }
  changed = options;
  changed.shape.kv = model::kKvInt8;
  if (options.shape.kv != model::kKvInt8) {
    try_change(changed, "--kv int8");
  }
  if (const int64_t context = LongestContext(sheet, options); context > 0) {
    changed = options;
    changed.context = context;
    try_change(changed, absl::StrCat("--context ", context));
  }
  for (const StoredAs trunk : {StoredAs::kQ8_0, StoredAs::kQ4_0}) {
    changed = options;
    changed.trunk = trunk;
    try_change(changed, absl::StrCat("--trunk ", NameOf(trunk)));
  }
  const int64_t missing = plan.floor.total() - options.memory_bytes;
  plan.advice.push_back({absl::StrCat("--memory ", plan.floor.total()), "fits",
                         AsDouble(missing)});
}

// Sequences of a context each of which may be asked for, but not together.
absl::Status CheckSequences(const ModelSheet& sheet,
                            const SingleNodeOptions& options) {
  constexpr double kBytesMax = 1e18;
  const SheetTotals totals = TotalsOf(sheet, options.shape.kv);
  const double bytes =
      AsDouble(options.sequences) *
      (AsDouble(options.context + model::kKvBlockPositions) *
           AsDouble(totals.kv_bytes_per_token + totals.window_bytes_per_token) +
       AsDouble(totals.recurrent_bytes + totals.convolution_bytes));
  return bytes <= kBytesMax
             ? absl::OkStatus()
             : UsageError(
                   "--concurrency",
                   absl::StrCat("no memory holds ",
                                Counted(options.sequences, "sequence"), " of ",
                                Counted(options.context, "position")),
                   "give fewer or shorter ones");
}

}  // namespace

double MeasuredHitRate(double cached_share) {
  for (size_t i = 1; i < kMeasuredHits.size(); ++i) {
    const HitPoint& left = kMeasuredHits[i - 1];
    const HitPoint& right = kMeasuredHits[i];
    if (cached_share <= right.cached) {
      const double along =
          (cached_share - left.cached) / (right.cached - left.cached);
      return left.hits + along * (right.hits - left.hits);
    }
  }
  return 1;
}

absl::StatusOr<SingleNodePlan> PlanSingleNode(
    const ModelSheet& sheet, const SingleNodeOptions& options) {
  for (size_t i = 0; i < sheet.layers.size(); ++i) {
    if (!CanStore(sheet.layers[i], options.experts)) {
      return InputError(
          absl::StrCat("layer ", i),
          absl::StrCat("its experts have rows that are no whole vectors or "
                       "blocks of ",
                       NameOf(options.experts)),
          "give --experts keep");
    }
  }
  MILLRACE_RETURN_IF_ERROR(CheckSequences(sheet, options));
  SingleNodePlan plan;
  plan.floor = FloorOf(sheet, options);
  CountRecords(sheet, options, plan);
  plan.memory_bytes_per_token = MemoryBytesPerToken(sheet, options);
  plan.fits = plan.floor.total() <= options.memory_bytes;
  if (!plan.fits) {
    plan.verdict = WhyNot(options, plan.floor);
    AddAdvice(sheet, options, plan);
    return plan;
  }
  FillCache(sheet, options, plan);
  FillSpeed(options, plan);
  plan.verdict = WhyYes(options, plan);
  return plan;
}

}  // namespace millrace::planner
