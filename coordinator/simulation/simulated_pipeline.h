#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/core/core_config.h"

namespace millrace::coordinator {

// What a simulation knows of a pipeline: who computes what for how long, and
// what holds its sequences. Plain numbers, so that a plan is one way to make it
// and a test another.

// Routed experts of one shape that a segment reads, over all of its layers. A
// pass of r rows reads count (1 - (1 - used/count)^r) of `count`: the expected
// number when each row chooses by itself.
struct ExpertReads {
  int64_t count = 0;  // >= used
  int64_t used = 0;   // by one row, >= 1
  double seconds_per_expert = 0;
};

// Keys and values that a segment reads for each of its sequences: as many
// positions as the sequence has, at most `positions_max` (0: all).
struct KvReads {
  int64_t positions_max = 0;
  double position_s = 0;  // over all of its layers that keep so many
};

// Neighboring layers on one node. A pass of r rows takes
//   pass_s + r * row_s + (distinct experts of r rows - of one) * their time
//   + over its sequences: sequence_s + the positions that each reads.
struct SimulatedSegment {
  int64_t node = 0;   // index into nodes
  double pass_s = 0;  // whatever the rows, the experts of one row included
  double row_s = 0;
  std::vector<ExpertReads> experts;
  std::vector<KvReads> kv = {};  // empty: not counted
  double sequence_s = 0;         // state read and written; 0: not counted
};

// From one segment to the next. All hops from one node to another share a link,
// which carries one frame at a time in each direction.
struct SimulatedHop {
  double row_s = 0;  // a row keeps the link busy
  double latency_s = 0;
};

struct SimulatedPipeline {
  std::vector<StagePool> nodes;  // each a server with a queue, first to last
  std::vector<SimulatedSegment> segments;  // in the order of the route, >= 1
  std::vector<SimulatedHop> hops;          // [segments - 1]
  double return_s = 0;  // tokens from the last node to the coordinator
  // What the coordinator itself takes for a frame, one after the other.
  double coordinator_s = 0;
  // For the coordinator; 0 as in CoreConfig.
  int64_t context = 0;
  int64_t chunk = 512;
  int64_t rows_max = 0;
  int64_t microbatches = 0;
  // As many as fill it, which may be more than a coordinator runs.
  int64_t microbatches_wanted = 0;

  // kInvalidArgument where an index or a number is out of range: times are
  // finite, at least 0 and at most a day for a full frame.
  [[nodiscard]] absl::Status Validate() const;
  // As a server on this pipeline runs it. Valid only.
  [[nodiscard]] CoreConfig CoreConfigOf() const;
};

// Seconds of a pass of `rows` >= 1 rows through the segment, without what it
// reads of its sequences.
double PassSeconds(const SimulatedSegment& segment, int64_t rows);

}  // namespace millrace::coordinator
