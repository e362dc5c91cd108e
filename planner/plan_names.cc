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
    case PlacementKind::kStreamed:
      return "streamed";
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

std::optional<Objective> ObjectiveNamed(absl::string_view name) {
  for (const Objective objective :
       {Objective::kThroughput, Objective::kConcurrency, Objective::kLatency,
        Objective::kNodes, Objective::kEnergy}) {
    if (name == NameOf(objective)) {
      return objective;
    }
  }
  return std::nullopt;
}

std::optional<PlacementKind> PlacementNamed(absl::string_view name) {
  for (const PlacementKind placement :
       {PlacementKind::kAuto, PlacementKind::kContiguous,
        PlacementKind::kInterleaved, PlacementKind::kStreamed}) {
    if (name == NameOf(placement)) {
      return placement;
    }
  }
  return std::nullopt;
}

}  // namespace millrace::planner
