#include "cli/check/findings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/bench/statistics.h"

namespace millrace::cli {
namespace {

// Logs of two nodes that are farther apart cannot be read together.
constexpr absl::Duration kClockOffsetMax = absl::Seconds(1);
// A link that does less than this part of what the plan counts with makes
// every time in it wrong.
constexpr double kBandwidthPart = 0.5;
// A latency may be twice what was planned, and a machine that wakes up slowly.
constexpr double kLatencyTimes = 2;
constexpr double kLatencySlack = 200e-6;

Finding Good(std::string name, std::string node, Json value, std::string why) {
  return {std::move(name),  std::move(node), true,
          std::move(value), std::move(why),  ""};
}

Finding Bad(Finding finding, std::string why, std::string hint) {
  finding.ok = false;
  finding.why = std::move(why);
  finding.hint = std::move(hint);
  return finding;
}

Finding FromError(std::string name, std::string node,
                  const absl::Status& status, absl::string_view hint) {
  const std::string own = HintOf(status);
  return Bad(Good(std::move(name), std::move(node), nullptr, ""),
             std::string(status.message()),
             own.empty() ? std::string(hint) : own);
}

std::string RateText(double bytes_per_s) {
  return absl::StrCat(HumanSize(static_cast<int64_t>(bytes_per_s)), "/s");
}

}  // namespace

std::vector<Finding> JudgeReachable(
    const CheckedPlan& plan, const std::vector<NodeAnswer>& answers,
    std::map<std::string, const NodeAnswer*>& by_name) {
  std::vector<Finding> findings;
  for (const NodeAnswer& answer : answers) {
    if (!answer.description.ok()) {
      findings.push_back(
          FromError("reachable", answer.address, answer.description.status(),
                    "start it with --control, or look at address and "
                    "firewall"));
    }
  }
  for (const CheckedPlan::Stage& stage : plan.stages) {
    std::vector<const NodeAnswer*> found;
    for (const NodeAnswer& answer : answers) {
      if (answer.description.ok() && answer.description->name == stage.node) {
        found.push_back(&answer);
      }
    }
    Finding finding = Good("reachable", stage.node, nullptr, "");
    if (found.empty()) {
      finding = Bad(std::move(finding), "no node of this name answered",
                    "start a worker with this --name and give its --control "
                    "address in --workers");
    } else if (found.size() > 1) {
      finding = Bad(std::move(finding),
                    absl::StrCat(found[0]->address, " and ", found[1]->address,
                                 " both have this name"),
                    "give every worker a --name of its own");
    } else {
      finding.value = found[0]->address;
      finding.why = absl::StrCat("answers at ", found[0]->address);
      by_name[stage.node] = found[0];
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

Finding JudgeVersion(const std::string& node,
                     const control::NodeDescription& description,
                     const std::string& version, uint32_t wire_version) {
  Finding finding = Good("version", node, Json(description.version),
                         absl::StrCat(description.version, ", protocol ",
                                      description.wire_version));
  const bool same = description.version == version &&
                    description.wire_version == wire_version;
  return same ? finding
              : Bad(finding,
                    absl::StrCat("is ", description.version, " with protocol ",
                                 description.wire_version, ", this program ",
                                 version, " with protocol ", wire_version),
                    "install the same version on every node");
}

Finding JudgeClock(const std::string& node, const NodeAnswer& answer) {
  const double offset_s = absl::ToDoubleSeconds(answer.clock_offset);
  const std::string text =
      absl::StrFormat("%+.3f s from this machine's", offset_s);
  Finding finding = Good("clock", node, Json(offset_s), text);
  const absl::Duration sure =
      absl::AbsDuration(answer.clock_offset) - answer.clock_doubt;
  return sure <= kClockOffsetMax
             ? finding
             : Bad(finding, text, "let both machines keep time by NTP");
}

Finding JudgeMemory(const CheckedPlan::Stage& stage,
                    const control::NodeDescription& description) {
  const int64_t room =
      description.memory_available_bytes >
              INT64_MAX - description.resident_bytes
          ? INT64_MAX
          : description.memory_available_bytes + description.resident_bytes;
  const std::string need = absl::StrCat(HumanSize(room), " for a stage of ",
                                        HumanSize(stage.resident_bytes));
  Finding finding = Good("memory", stage.node, Json(room), need);
  if (room >= stage.resident_bytes) {
    return finding;
  }
  const bool budget = description.memory_bytes > 0 &&
                      description.memory_bytes < stage.resident_bytes;
  return Bad(finding, need,
             budget ? "raise its --memory, or plan with what it has"
                    : "end what else uses memory there, or plan with what it "
                      "has");
}

Finding JudgeModel(const std::string& node, const CheckedPlan& plan,
                   const absl::StatusOr<control::ModelDescription>& model) {
  if (!model.ok()) {
    return FromError("model", node, model.status(),
                     "copy the model's files there, or give --models or "
                     "--model");
  }
  Finding finding = Good(
      "model", node, Json(model->digest),
      absl::StrCat(Counted(model->files, "file"), ", ", HumanSize(model->bytes),
                   ", digest ", model->digest.substr(0, 12),
                   " (headers, sizes and samples of the tensors; inspect "
                   "--verify reads every byte)"));
  return model->digest == plan.model_digest
             ? finding
             : Bad(finding,
                   absl::StrCat("has the digest ", model->digest.substr(0, 12),
                                ", the plan is for ",
                                plan.model_digest.substr(0, 12)),
                   "copy the same files to every node");
}

Finding JudgeRdma(const std::string& node,
                  const control::NodeDescription& description) {
  boost::json::array devices;
  for (const std::string& device : description.rdma_devices) {
    devices.push_back(Json(boost::json::string(device)));
  }
  return Good("rdma", node, std::move(devices),
              description.rdma_devices.empty()
                  ? "no active device, links are TCP"
                  : absl::StrJoin(description.rdma_devices, ", "));
}

Finding JudgeLink(const CheckedPlan::Hop& hop,
                  const absl::StatusOr<transport::LinkRounds>& rounds) {
  const std::string node = absl::StrCat(hop.from, " - ", hop.to);
  if (!rounds.ok()) {
    return FromError("link", node, rounds.status(),
                     "look at addresses and firewall: links take ports of "
                     "their own");
  }
  const double out = Median(rounds->bandwidth_out);
  const double in = Median(rounds->bandwidth_in);
  const double latency = Median(rounds->latency_s);
  const std::string seen =
      absl::StrCat(RateText(out), " there, ", RateText(in), " back, ",
                   HumanDuration(absl::Seconds(latency)));
  Finding finding = Good(
      "link", node,
      boost::json::object{
          {"bandwidth_out", out}, {"bandwidth_in", in}, {"latency", latency}},
      seen);
  const double slower = std::min(out, in);
  if (hop.bandwidth.has_value() && slower < kBandwidthPart * *hop.bandwidth) {
    return Bad(
        finding,
        absl::StrCat(seen, "; the plan counts with ", RateText(*hop.bandwidth)),
        "look at cable, interface and other traffic, or plan with what "
        "`probe --peer` measures");
  }
  if (hop.latency_s.has_value() &&
      latency > kLatencyTimes * *hop.latency_s + kLatencySlack) {
    return Bad(finding,
               absl::StrCat(seen, "; the plan counts with a latency of ",
                            HumanDuration(absl::Seconds(*hop.latency_s))),
               "plan with what `probe --peer` measures");
  }
  return finding;
}

std::string VerdictOf(const std::vector<Finding>& findings) {
  std::vector<std::string> bad;
  for (const Finding& finding : findings) {
    if (!finding.ok) {
      bad.push_back(absl::StrCat(finding.name, " of ", finding.node));
    }
  }
  constexpr size_t kNamedMax = 3;
  if (bad.empty()) {
    return absl::StrCat("all ", findings.size(), " checks are good");
  }
  const size_t more = bad.size() > kNamedMax ? bad.size() - kNamedMax : 0;
  bad.resize(bad.size() - more);
  return absl::StrCat(bad.size() + more, " of ", findings.size(),
                      " checks failed: ", absl::StrJoin(bad, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

}  // namespace millrace::cli
