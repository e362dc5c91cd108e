#pragma once

#include <cstdint>

#include "absl/numeric/int128.h"

namespace millrace::planner {

// Experts that are read from NVMe through a cache of whole records: what a
// process holds for it, and what it finds there. For one machine
// (single_node.h) and for a node of a cluster (streamed/) alike.

// Reads that are under way at once beside the records in use: enough to keep
// an NVMe device busy with records of megabytes.
inline constexpr int64_t kReadsInFlight = 8;

// The experts of some layers, as one cache sees them.
struct ExpertDemand {
  int64_t records = 0;       // of all layers; 0: no routed experts
  int64_t record_bytes = 0;  // the largest, which every slot holds
  int64_t used_most = 0;     // records that one token wants of a layer, at most

  [[nodiscard]] int64_t read_buffer_bytes() const {
    return record_bytes > 0 ? kReadsInFlight * record_bytes : 0;
  }
  // What must be in memory at once to compute a layer of one token.
  [[nodiscard]] int64_t working_set_bytes() const {
    return used_most * record_bytes;
  }
  // Slots in `room` bytes, the working set among them; at most all records.
  // Records there are.
  [[nodiscard]] int64_t CachedRecords(absl::int128 room) const;
  // Share of wanted records that such a cache holds when every expert is
  // equally likely: what every policy reaches, and the least on any model. 1
  // without records.
  [[nodiscard]] double EvenHitShare(int64_t cached) const;
};

// E (1 - (1 - k/E)^rows): different experts that so many rows choose of `count`
// when each chooses `used` by itself, on average.
double DistinctExperts(int64_t count, int64_t used, int64_t rows);

// Those of them that one row alone does not choose; 0 up to one row.
double ExpertsBeyondOne(int64_t count, int64_t used, int64_t rows);

}  // namespace millrace::planner
