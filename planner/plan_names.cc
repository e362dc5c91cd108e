#include "planner/plan_names.h"

namespace millrace::planner {

const char* NameOf(Objective objective) {
  switch (objective) {
    case Objective::kThroughput:
      return "throughput";
    case Objective::kConcurrency:
      return "concurrency";
    case Objective::kLatency:
      return "latency";
    case Objective::kNodes:
      return "nodes";
    case Objective::kEnergy:
      return "energy";
  }
  return "";
}

const char* NameOf(PlacementKind placement) {
  switch (placement) {
    case PlacementKind::kAuto:
      return "auto";
    case PlacementKind::kContiguous:
      return "contiguous";
    case PlacementKind::kInterleaved:
      return "interleaved";
  }
  return "";
}

const char* NameOf(BindingKind binding) {
  switch (binding) {
    case BindingKind::kMemory:
      return "memory";
    case BindingKind::kTime:
      return "time";
    case BindingKind::kLink:
      return "link";
  }
  return "";
}

}  // namespace millrace::planner
