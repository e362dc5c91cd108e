#include "cli/plan_verify.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/bench/statistics.h"
#include "cli/http_call.h"
#include "cli/interrupt_flag.h"

namespace millrace::cli {
namespace {

constexpr int kRounds = 5;
// A stall in the short answers of a round leaves nothing to measure; of so many
// rounds kRounds must tell something.
constexpr int kTriesMax = 4 * kRounds;
// Tokens of the short and of the long answers. What lies between is measured.
constexpr int64_t kShort = 8;
constexpr int64_t kLong = 72;
constexpr int64_t kPromptLen = 8;
constexpr int64_t kSequencesMax = 1024;
constexpr absl::Duration kTimeout = absl::Minutes(5);

// Seconds of every sequence, and from the first begin to the last end.
struct Times {
  double all = 0;
  std::vector<double> each;
};

class Load {
 public:
  Load(const transport::Endpoint& server, int64_t sequences,
       const std::atomic<bool>& cancelled)
      : server_(server), sequences_(sequences), cancelled_(cancelled) {}

  absl::StatusOr<Times> Run(int64_t tokens) const;

 private:
  absl::Status RunOne(int64_t index, int64_t tokens) const;

  const transport::Endpoint server_;
  const int64_t sequences_;
  const std::atomic<bool>& cancelled_;
};

absl::Status Load::RunOne(int64_t index, int64_t tokens) const {
  boost::json::array prompt;
  for (int64_t i = 0; i < kPromptLen; ++i) {
    prompt.push_back(10 + (index * kPromptLen + i) % 64);
  }
  HttpRequest request;
  request.server = server_;
  request.method = "POST";
  request.path = "/v1/completions";
  request.body = WriteJson(boost::json::object{{"prompt", std::move(prompt)},
                                               {"max_tokens", tokens},
                                               {"temperature", 0},
                                               {"ignore_eos", true}});
  request.timeout = kTimeout;
  return HttpCall(request, cancelled_).status();
}

absl::StatusOr<Times> Load::Run(int64_t tokens) const {
  const SystemClock clock;
  Times times;
  times.each.resize(static_cast<size_t>(sequences_));
  std::vector<absl::Status> ended(static_cast<size_t>(sequences_));
  const absl::Duration start = clock.Monotonic();
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < sequences_; ++i) {
    threads.emplace_back([&, i]() noexcept {
      const absl::Duration begin = clock.Monotonic();
      ended[static_cast<size_t>(i)] = RunOne(i, tokens);
      times.each[static_cast<size_t>(i)] =
          absl::ToDoubleSeconds(clock.Monotonic() - begin);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  times.all = absl::ToDoubleSeconds(clock.Monotonic() - start);
  for (const absl::Status& status : ended) {
    MILLRACE_RETURN_IF_ERROR(status);
  }
  return times;
}

boost::json::object VerifiedJson(const Verified& value) {
  return {{"predicted", value.predicted},
          {"measured", value.measured},
          {"error", value.error()}};
}

}  // namespace

absl::StatusOr<Verification> VerifyPlan(const planner::Plan& plan,
                                        const std::string& url,
                                        Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(const transport::Endpoint server,
                            ParseHttpUrl("--verify", url));
  if (!plan.tokens_per_s.has_value() || !plan.tpot_s.has_value() ||
      !plan.microbatches.has_value()) {
    return UsageError("--verify",
                      "the plan has no times that could be compared",
                      "give every node memory_bandwidth and compute, and "
                      "every link bandwidth and latency");
  }
  Verification out;
  out.url = url;
  out.sequences =
      std::min(kSequencesMax, *plan.microbatches * plan.rows.value_or(1));
  const InterruptFlag interrupted;
  const Load load(server, out.sequences, interrupted.flag());
  constexpr auto kTokens = static_cast<double>(kLong - kShort);
  std::vector<double> rates;
  std::vector<double> tpots;
  MILLRACE_RETURN_IF_ERROR(load.Run(kShort).status());
  for (int tries = 0; out.rounds < kRounds; ++tries) {
    if (tries == kTriesMax) {
      return MakeError(absl::StatusCode::kUnavailable, url,
                       "longer answers took no longer: it has other work",
                       "measure it alone");
    }
    console.Progress(
        absl::StrFormat("round %d of %d", out.rounds + 1, kRounds));
    MILLRACE_ASSIGN_OR_RETURN(const Times few, load.Run(kShort));
    MILLRACE_ASSIGN_OR_RETURN(const Times many, load.Run(kLong));
    double seconds = 0;
    for (size_t i = 0; i < many.each.size(); ++i) {
      seconds += many.each[i] - few.each[i];
    }
    if (seconds <= 0 || many.all <= few.all) {
      continue;
    }
    ++out.rounds;
    rates.push_back(static_cast<double>(out.sequences) * kTokens /
                    (many.all - few.all));
    tpots.push_back(seconds / kTokens / static_cast<double>(out.sequences));
  }
  console.Progress("");
  out.tokens_per_s = {*plan.tokens_per_s, Median(rates)};
  out.tpot_s = {*plan.tpot_s, Median(tpots)};
  return out;
}

Json VerificationJson(const Verification& verification) {
  return boost::json::object{
      {"url", verification.url},
      {"sequences", verification.sequences},
      {"rounds", verification.rounds},
      {"tokens_per_s", VerifiedJson(verification.tokens_per_s)},
      {"tpot_s", VerifiedJson(verification.tpot_s)}};
}

std::string VerificationText(const Verification& verification) {
  return absl::StrFormat(
      "\nmeasured with %s at %s:\n"
      "  tokens/s  predicted %8.1f  measured %8.1f  error %+.0f %%\n"
      "  TPOT      predicted %8s  measured %8s  error %+.0f %%\n",
      Counted(verification.sequences, "sequence"), verification.url,
      verification.tokens_per_s.predicted, verification.tokens_per_s.measured,
      100 * verification.tokens_per_s.error(),
      HumanDuration(absl::Seconds(verification.tpot_s.predicted)),
      HumanDuration(absl::Seconds(verification.tpot_s.measured)),
      100 * verification.tpot_s.error());
}

}  // namespace millrace::cli
