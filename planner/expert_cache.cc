#include "planner/expert_cache.h"

#include <algorithm>
#include <cmath>

namespace millrace::planner {

int64_t ExpertDemand::CachedRecords(absl::int128 room) const {
  return static_cast<int64_t>(
      std::min(absl::int128(records), room / record_bytes));
}

double ExpertDemand::EvenHitShare(int64_t cached) const {
  return records == 0
             ? 1
             : static_cast<double>(cached) / static_cast<double>(records);
}

double DistinctExperts(int64_t count, int64_t used, int64_t rows) {
  const auto all = static_cast<double>(count);
  const auto chosen = static_cast<double>(used);
  // Exact for one row, so that its reads are whole records.
  return rows == 1
             ? chosen
             : all *
                   (1 - std::pow(1 - chosen / all, static_cast<double>(rows)));
}

double ExpertsBeyondOne(int64_t count, int64_t used, int64_t rows) {
  return rows <= 1
             ? 0
             : DistinctExperts(count, used, rows) - static_cast<double>(used);
}

}  // namespace millrace::planner
