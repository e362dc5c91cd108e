#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "cli/console.h"
#include "planner/plan.h"

namespace millrace::cli {

// A number that a plan gives, and the same as a cluster does it.
struct Verified {
  double predicted = 0;
  double measured = 0;

  // predicted / measured - 1: above 0 the plan promises too much of a rate, or
  // too long a time.
  [[nodiscard]] double error() const { return predicted / measured - 1; }
};

struct Verification {
  std::string url;
  int64_t sequences = 0;  // that ran together: as many as fill the plan
  int rounds = 0;
  Verified tokens_per_s, tpot_s;  // measured: medians of the rounds
};

// Runs as many sequences on the cluster behind `url` as the plan counts with
// and measures what one token more costs: each round runs short and long
// answers and takes the difference, so that prompts are not in it. The caller
// sees to it that the cluster runs this plan. UsageError where the plan has no
// times; kUnavailable: the cluster does not answer; kCancelled after an
// interrupt.
absl::StatusOr<Verification> VerifyPlan(const planner::Plan& plan,
                                        const std::string& url,
                                        Console& console);

// {url, sequences, rounds, tokens_per_s and tpot_s {predicted, measured,
// error}}, and the same as lines for people.
Json VerificationJson(const Verification& verification);
std::string VerificationText(const Verification& verification);

}  // namespace millrace::cli
