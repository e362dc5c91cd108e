// What LoadSimulation does when nodes and links fail: the core hears of it as
// from a running cluster.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "coordinator/simulation/load_simulation.h"

namespace millrace::coordinator {
namespace {

// As in MembershipOptions: silence after which a worker counts as lost.
constexpr absl::Duration kLease = absl::Seconds(3);

absl::Status Unavailable(absl::string_view what) {
  return MakeError(absl::StatusCode::kUnavailable, "pipeline", what);
}

}  // namespace

void LoadSimulation::Apply(const Fault& fault) {
  const auto name = [&](int64_t node) -> const std::string& {
    return pipeline_.nodes[static_cast<size_t>(node)].name;
  };
  Health& health = health_[static_cast<size_t>(fault.node)];
  switch (fault.kind) {
    case FaultKind::kLost:
      health.lost = true;
      Disconnect(
          Unavailable(absl::StrCat("node '", name(fault.node), "' was lost")));
      return;
    case FaultKind::kStalled:
      if (health.stall == 0) {
        health.stall = ++num_stalls_;
        stages_.Stall(now_, fault.node);
        SetTimer(Timer{.at = now_ + kLease,
                       .kind = TimerKind::kLease,
                       .node = fault.node,
                       .stall = health.stall});
      }
      return;
    case FaultKind::kSlow:
      if (fault.other < 0) {
        stages_.SetNodeFactor(fault.node, fault.factor);
      } else {
        stages_.SetLinkFactor(fault.node, fault.other, fault.factor);
      }
      return;
    case FaultKind::kCut:
      cut_.insert(std::minmax(fault.node, fault.other));
      Disconnect(
          Unavailable(absl::StrCat("the link between '", name(fault.node),
                                   "' and '", name(fault.other), "' was cut")));
      return;
    case FaultKind::kBack:
      Back(fault);
      return;
  }
}

void LoadSimulation::Back(const Fault& fault) {
  if (fault.other < 0) {
    Health& health = health_[static_cast<size_t>(fault.node)];
    health.lost = false;
    health.stall = 0;
    stages_.Resume(now_, fault.node);
    stages_.SetNodeFactor(fault.node, 1);
  } else {
    cut_.erase(std::minmax(fault.node, fault.other));
    stages_.SetLinkFactor(fault.node, fault.other, 1);
  }
  ConnectIfWhole();
}

void LoadSimulation::LeaseEnds(int64_t node, uint64_t stall) {
  const Health& health = health_[static_cast<size_t>(node)];
  if (health.stall == stall && core_.connected()) {
    Disconnect(Unavailable(absl::StrCat(
        "node '", pipeline_.nodes[static_cast<size_t>(node)].name,
        "' has not been heard of for ", absl::FormatDuration(kLease))));
  }
}

void LoadSimulation::Disconnect(const absl::Status& reason) {
  core_.Disconnect(now_, reason);
  // What is under way never arrives.
  stages_.Clear(now_);
  free_tickets_.clear();
  for (int64_t ticket = config_.microbatches; ticket-- > 0;) {
    free_tickets_.push_back(ticket);
  }
}

void LoadSimulation::ConnectIfWhole() {
  const bool whole =
      cut_.empty() &&
      std::all_of(health_.begin(), health_.end(), [](const Health& health) {
        return !health.lost && health.stall == 0;
      });
  if (whole && !core_.connected()) {
    core_.Connect(now_, ++epoch_);
  }
}

}  // namespace millrace::coordinator
