#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/console.h"
#include "cli/plan_inputs.h"

namespace CLI {
class App;
}  // namespace CLI

namespace millrace::cli {

// `plan --from`: a plan changed for lost nodes, or for another load.
struct ReplanFlags {
  std::string from;  // a plan file; empty: not asked for
  std::string lost;  // names of nodes, between commas
  // "http://HOST:PORT" of a coordinator whose load counts, and for how long it
  // is watched.
  std::string load;
  double load_seconds = 10;

  void Define(CLI::App& app);
  [[nodiscard]] bool chosen() const { return !from.empty() || !lost.empty(); }
  // UsageError unless one of --lost, --load and a load by its numbers is given,
  // or for what a plan file says itself.
  [[nodiscard]] absl::Status Check(const PlanFlags& plan) const;
};

// Plans anew from the plan file and shows it; writes it to `out` where that is
// not empty ("-": stdout). The flags have been checked. AnswerIsNo where the
// model does not fit any more.
absl::Status PlanFromPlan(const ReplanFlags& flags, const PlanFlags& plan,
                          const std::string& out, Console& console);

}  // namespace millrace::cli
