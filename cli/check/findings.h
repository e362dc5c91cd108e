#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "cli/check/checked_plan.h"
#include "proto/node_messages.h"
#include "transport/link_meter.h"

namespace millrace::cli {

// One thing that was looked at.
struct Finding {
  std::string name;  // reachable, version, clock, memory, model, rdma or link
  std::string node;
  bool ok = true;
  Json value;        // what was seen; null where nothing was
  std::string why;   // a sentence for people; what is wrong where `ok` is false
  std::string hint;  // what to do; empty where `ok`
};

// What a node answered.
struct NodeAnswer {
  std::string address;
  absl::StatusOr<control::NodeDescription> description;
  // Of its clock less ours, and how far that may be off.
  absl::Duration clock_offset;
  absl::Duration clock_doubt;
};

// Pure judgments of answers against a plan. `version` and `wire_version` are
// this program's.

// For every stage whether exactly one node of its name answered, and for every
// address that did not. `by_name`: the answers of the stages found.
std::vector<Finding> JudgeReachable(
    const CheckedPlan& plan, const std::vector<NodeAnswer>& answers,
    std::map<std::string, const NodeAnswer*>& by_name);
Finding JudgeVersion(const std::string& node,
                     const control::NodeDescription& description,
                     const std::string& version, uint32_t wire_version);
Finding JudgeClock(const std::string& node, const NodeAnswer& answer);
// What the process holds already counts as free: a stage is loaded in its
// place.
Finding JudgeMemory(const CheckedPlan::Stage& stage,
                    const control::NodeDescription& description);
Finding JudgeModel(const std::string& node, const CheckedPlan& plan,
                   const absl::StatusOr<control::ModelDescription>& model);
// Never fails: without devices links are TCP.
Finding JudgeRdma(const std::string& node,
                  const control::NodeDescription& description);
Finding JudgeLink(const CheckedPlan::Hop& hop,
                  const absl::StatusOr<transport::LinkRounds>& rounds);

// One sentence.
std::string VerdictOf(const std::vector<Finding>& findings);

}  // namespace millrace::cli
