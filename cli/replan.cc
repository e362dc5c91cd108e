#include "cli/replan.h"

#include <algorithm>
#include <set>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "boost/json/object.hpp"
#include "cli/exit_on_interrupt.h"
#include "cli/live_load.h"
#include "cli/replan_report.h"
#include "planner/plan_reader.h"
#include "planner/replan/replan.h"

namespace millrace::cli {
namespace {

// Names that a hint lists at most.
constexpr size_t kNamesShown = 10;
constexpr double kLoadSecondsMax = 86400;

bool GivesLoad(const PlanFlags& plan) {
  return plan.prompt_len.has_value() || plan.output_len.has_value() ||
         plan.concurrency.has_value();
}

PlanFlags FlagsOf(const LiveLoad& load) {
  PlanFlags flags;
  flags.prompt_len = load.prompt_len;
  flags.output_len = load.output_len;
  flags.concurrency = load.concurrency;
  return flags;
}

std::string SomeNames(const planner::Cluster& cluster) {
  std::string names = "give one of";
  for (size_t i = 0; i < cluster.nodes.size() && i < kNamesShown; ++i) {
    absl::StrAppend(&names, i == 0 ? " " : ", ",
                    Printable(cluster.nodes[i].name));
  }
  return absl::StrCat(names, cluster.nodes.size() > kNamesShown ? ", ..." : "");
}

absl::StatusOr<std::vector<int64_t>> LostNodes(
    const std::string& text, const planner::Cluster& cluster) {
  std::set<int64_t> lost;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::string_view name = absl::StripAsciiWhitespace(part);
    const auto found = std::find_if(
        cluster.nodes.begin(), cluster.nodes.end(),
        [&](const planner::Node& node) { return node.name == name; });
    if (found == cluster.nodes.end()) {
      return UsageError(
          "--lost",
          absl::StrCat("'", Printable(name), "' is no node of the plan"),
          SomeNames(cluster));
    }
    lost.insert(found - cluster.nodes.begin());
  }
  if (lost.size() == cluster.nodes.size()) {
    return AnswerIsNo("plan", "no node of the plan is left",
                      "make a plan for other nodes");
  }
  return std::vector<int64_t>(lost.begin(), lost.end());
}

// What a plan file says of where its numbers and its model come from, which the
// planner does not read.
void KeepOrigins(const Json& before, Json& document) {
  const auto* old = before.if_object();
  if (old == nullptr) {
    return;
  }
  const Json* model = old->if_contains("model");
  const Json* path = model != nullptr && model->is_object()
                         ? model->as_object().if_contains("path")
                         : nullptr;
  if (path != nullptr && path->is_string()) {
    document.as_object()["model"].as_object()["path"] = *path;
  }
  const Json* words = old->if_contains("provenance");
  if (words == nullptr || !words->is_object()) {
    return;
  }
  for (const auto& [key, word] : words->as_object()) {
    if (absl::StartsWith(absl::string_view(key.data(), key.size()),
                         "inputs.cluster.") &&
        word.is_string() && word.as_string() == "measured") {
      document.as_object()["provenance"].as_object()[key] = "measured";
    }
  }
}

absl::StatusOr<planner::PlanOptions> OptionsFor(const PlanFlags& plan,
                                                planner::PlanOptions options) {
  const auto take = [](const std::optional<int64_t>& given,
                       std::optional<int64_t>& value) {
    value = given.has_value() ? given : value;
  };
  take(plan.prompt_len, options.prompt_len);
  take(plan.output_len, options.output_len);
  take(plan.concurrency, options.concurrency);
  const bool lengths =
      plan.prompt_len.has_value() || plan.output_len.has_value();
  if (lengths && options.prompt_len.has_value() &&
      options.output_len.has_value()) {
    options.contexts = {*options.prompt_len + *options.output_len};
    if (options.contexts[0] > planner::kLengthMax) {
      return UsageError("--prompt-len and --output-len", "are too long",
                        absl::StrCat("give at most ", planner::kLengthMax,
                                     " tokens together"));
    }
  }
  return options;
}

absl::StatusOr<planner::replan::Replanned> WithoutNodes(
    const planner::PlanFile& file, const std::vector<int64_t>& lost,
    Console& console) {
  const ExitOnInterrupt guard("planning", console);
  return planner::replan::PlanWithoutNodes(file, lost);
}

absl::StatusOr<planner::replan::PlanForLoad> AnewFor(
    const planner::PlanFile& file, const planner::PlanOptions& options,
    Console& console) {
  const ExitOnInterrupt guard("planning", console);
  return planner::replan::PlanAnewFor(file, options);
}

absl::Status Answer(const planner::Plan& plan) {
  return plan.fits
             ? absl::OkStatus()
             : AnswerIsNo("plan", plan.verdict,
                          plan.advice.empty() ? "give more or larger nodes"
                                              : plan.advice[0].change);
}

absl::Status Show(const Json& document, const std::string& text,
                  const std::string& out, Console& console) {
  if (!out.empty() && out != "-") {
    MILLRACE_RETURN_IF_ERROR(
        WriteFileAtomically(out, absl::StrCat(WriteJson(document), "\n")));
  }
  if (console.json()) {
    console.OutJson(document);
  } else {
    console.Out(out == "-" ? absl::StrCat(WriteJson(document), "\n") : text);
  }
  return absl::OkStatus();
}

}  // namespace

void ReplanFlags::Define(CLI::App& app) {
  app.add_option("--from", from,
                 "Change this plan file, for --lost nodes or for another load: "
                 "--prompt-len, --output-len, --concurrency, or --load");
  app.add_option("--lost", lost,
                 "With --from: nodes that are gone, NODE,NODE; the plan that "
                 "moves the fewest bytes, beside the best one");
  app.add_option("--load", load,
                 "With --from: the load that this coordinator has now, "
                 "http://HOST:PORT");
  app.add_option("--load-seconds", load_seconds,
                 "How long --load watches it (10)");
}

absl::Status ReplanFlags::Check(const PlanFlags& plan) const {
  if (from.empty()) {
    return UsageError("--lost", "needs the plan that the nodes were part of",
                      "give --from PLAN");
  }
  const std::pair<const char*, bool> others[] = {
      {"MODEL", !plan.model.empty()},
      {"--costs", !plan.costs.empty()},
      {"--cluster", !plan.cluster.empty()},
      {"--context", !plan.contexts.empty()},
      {"--objective", !plan.objective.empty()},
      {"--placement", !plan.placement.empty()},
      {"--kv", !plan.kv.empty()},
      {"--chunk", plan.chunk.has_value()}};
  for (const auto& [option, given] : others) {
    if (given) {
      return UsageError(option, "goes without --from: the plan file says it",
                        "leave it out");
    }
  }
  const int changes =
      int{!lost.empty()} + int{GivesLoad(plan)} + int{!load.empty()};
  if (changes != 1) {
    return UsageError(
        "--from",
        changes == 0
            ? "needs what has changed"
            : "takes lost nodes, a load or --load, not several at once",
        "give --lost NODE, or --prompt-len, --output-len and --concurrency, or "
        "--load http://HOST:PORT");
  }
  if (!(load_seconds >= 0 && load_seconds <= kLoadSecondsMax)) {
    return UsageError("--load-seconds",
                      absl::StrCat(load_seconds, " is out of range"),
                      absl::StrCat("give 0 to ", kLoadSecondsMax));
  }
  for (const std::optional<int64_t>& value :
       {plan.prompt_len, plan.output_len, plan.concurrency}) {
    if (value.has_value() && (*value < 1 || *value > planner::kLengthMax)) {
      return UsageError(
          "--prompt-len, --output-len or --concurrency",
          absl::StrCat(*value, " is out of range"),
          absl::StrCat("give a number from 1 to ", planner::kLengthMax));
    }
  }
  return absl::OkStatus();
}

absl::Status PlanFromPlan(const ReplanFlags& flags, const PlanFlags& plan,
                          const std::string& out, Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(flags.from, kPlanInputBytesMax));
  MILLRACE_ASSIGN_OR_RETURN(const planner::PlanFile file,
                            planner::ParsePlan(text, flags.from));
  if (!file.plan.fits) {
    return InputError(flags.from, "holds no route: the model did not fit",
                      "make a plan that fits first");
  }
  if (file.plan.placement == planner::PlacementKind::kStreamed) {
    return InputError(flags.from,
                      "is a streamed plan, which --from does not change in "
                      "this version",
                      "plan anew with --cluster and --placement streamed");
  }
  // A plan file may be YAML; where it is, it carries no more than was read.
  const absl::StatusOr<Json> before = ParseJson(text, flags.from);
  Json document;
  std::string for_people;
  absl::Status answer;
  if (!flags.lost.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> lost,
                              LostNodes(flags.lost, file.cluster));
    MILLRACE_ASSIGN_OR_RETURN(const planner::replan::Replanned replanned,
                              WithoutNodes(file, lost, console));
    document = ReplannedJson(file, replanned);
    for_people = ReplannedText(flags.lost, replanned);
    answer = Answer(replanned.plan);
  } else {
    std::optional<LiveLoad> live;
    if (!flags.load.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(
          live,
          MeasureLoad(flags.load, absl::Seconds(flags.load_seconds), console));
    }
    MILLRACE_ASSIGN_OR_RETURN(
        const planner::PlanOptions options,
        OptionsFor(live.has_value() ? FlagsOf(*live) : plan, file.options));
    MILLRACE_ASSIGN_OR_RETURN(const planner::replan::PlanForLoad planned,
                              AnewFor(file, options, console));
    document = PlanForLoadJson(file, options, planned);
    for_people = PlanForLoadText(file.cluster, planned);
    if (live.has_value()) {
      document.as_object()["load"] = live->ToJson();
      for_people = absl::StrCat(live->Text(), for_people);
    }
    answer = Answer(planned.plan);
  }
  if (before.ok()) {
    KeepOrigins(*before, document);
  }
  MILLRACE_RETURN_IF_ERROR(Show(document, for_people, out, console));
  return answer;
}

}  // namespace millrace::cli
