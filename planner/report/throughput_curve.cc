#include "planner/report/throughput_curve.h"

#include <algorithm>

#include "planner/route_times.h"

namespace millrace::planner::report {
namespace {

constexpr int64_t kRowsMax = int64_t{1} << 20;

ThroughputPoint PointOf(const RouteTimes& times, int64_t rows,
                        int64_t microbatches) {
  const double loop = times.LoopSeconds(rows);
  const double cycle = times.CycleSeconds(rows);
  const auto count = static_cast<double>(microbatches);
  return {rows * microbatches, rows, microbatches,
          static_cast<double>(rows) * std::min(count / loop, 1 / cycle),
          std::max(loop, count * cycle)};
}

// Powers of two, the plan's own rows and the most that `sequences_max` allow.
std::vector<int64_t> RowsShown(const RouteTimes& times, const Plan& plan,
                               int64_t sequences_max) {
  std::vector<int64_t> shown;
  for (int64_t rows = 1; rows <= kRowsMax; rows *= 2) {
    shown.push_back(rows);
  }
  if (plan.rows.has_value()) {
    shown.push_back(*plan.rows);
  }
  const int64_t last = times.RowsFor(sequences_max);
  shown.push_back(last);
  shown.push_back(std::max<int64_t>(1, last - 1));
  std::sort(shown.begin(), shown.end());
  return shown;
}

}  // namespace

std::vector<ThroughputPoint> ThroughputCurveOf(const CostModel& model,
                                               const Plan& plan,
                                               int64_t sequences_max) {
  std::vector<ThroughputPoint> points;
  const RouteTimes times(model, plan.route);
  if (!times.known() || plan.route.empty() || times.CycleSeconds(1) <= 0) {
    return points;
  }
  const int64_t full = times.Microbatches(1);
  for (int64_t count = 1; count < full && count <= sequences_max; count *= 2) {
    points.push_back(PointOf(times, 1, count));
  }
  for (const int64_t rows : RowsShown(times, plan, sequences_max)) {
    const int64_t count = times.Microbatches(rows);
    if (rows > sequences_max / count) {
      break;
    }
    // Micro-batches that fill the pipeline may become fewer with more rows.
    if (points.empty() || rows * count > points.back().sequences) {
      points.push_back(PointOf(times, rows, count));
    }
  }
  return points;
}

}  // namespace millrace::planner::report
