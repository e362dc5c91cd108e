#include "cli/simulation/load_flags.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "coordinator/core/kv_ledger.h"

namespace millrace::cli {
namespace {

using coordinator::LoadOptions;
using coordinator::ServiceLimits;
using coordinator::SimulatedPipeline;
using coordinator::Workload;

constexpr int64_t kFileBytesMax = int64_t{4} << 30;
constexpr int64_t kRequestsDefault = 1000;
constexpr absl::Duration kLimitMax = absl::Hours(1000);
constexpr int64_t kRequestsMax = coordinator::kTraceEntriesMax;
constexpr int64_t kConcurrencyMax = 1'000'000;
// Of all waiting clients' prompts: 2 GB of them.
constexpr int64_t kWaitingTokensMax = int64_t{1} << 29;

absl::Status CheckRange(absl::string_view option, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) {
    return absl::OkStatus();
  }
  return UsageError(option, absl::StrCat(value, " is out of range"),
                    absl::StrCat("give a number from 1 to ", most));
}

absl::Status CheckRange(absl::string_view option, double value, double least,
                        double most) {
  if (value >= least && value <= most) {
    return absl::OkStatus();
  }
  return UsageError(option, absl::StrCat(value, " is out of range"),
                    absl::StrCat("give a number from ", least, " to ", most));
}

// As ReadFile, in pieces between which it asks whether to go on.
absl::StatusOr<std::string> ReadTrace(const std::string& path,
                                      const coordinator::GoOn& go_on) {
  constexpr int64_t kPiece = int64_t{16} << 20;
  MILLRACE_ASSIGN_OR_RETURN(const auto file, RandomAccessFile::Open(path));
  if (file->size() > kFileBytesMax) {
    return InputError(
        Printable(path, 512),
        absl::StrCat("is ", file->size(), " bytes, more than the ",
                     kFileBytesMax, " that a trace may have"),
        "give a part of it");
  }
  std::string content;
  content.reserve(static_cast<size_t>(file->size()));
  for (int64_t offset = 0; offset < file->size(); offset += kPiece) {
    if (go_on != nullptr && !go_on()) {
      return absl::CancelledError("reading was interrupted");
    }
    const auto size =
        static_cast<size_t>(std::min(kPiece, file->size() - offset));
    content.resize(content.size() + size);
    MILLRACE_RETURN_IF_ERROR(file->Read(
        offset,
        absl::MakeSpan(reinterpret_cast<std::byte*>(content.data() + offset),
                       size)));
  }
  return content;
}

}  // namespace

void LoadFlags::Define(CLI::App& app) {
  app.add_option("--rate", rate, "Requests that arrive in a second");
  app.add_option("--concurrency", concurrency,
                 "Clients that send a request when their last one has ended");
  app.add_option("--trace", trace,
                 "Recorded load: lines of timestamp (ms), input_length, "
                 "output_length");
  app.add_option("--burstiness", burstiness,
                 "Shape of the gaps of --rate: 1 Poisson, less in bursts")
      ->capture_default_str();
  app.add_option("--requests", requests,
                 "Requests in all: 1000, or all of --trace");
  app.add_option("--input-len", input_len, "Tokens of a prompt")
      ->capture_default_str();
  app.add_option("--output-len", output_len, "Tokens of an answer")
      ->capture_default_str();
  app.add_option("--range-ratio", range_ratio,
                 "Lengths are spread evenly by so much, 0 to 1")
      ->capture_default_str();
  app.add_option("--slo", slo, "Limits to keep, as ttft=2s,tpot=50ms,e2el=30s");
  app.add_option("--faults", faults,
                 "What fails when: lines of at, kind, node or between");
  app.add_option("--seed", seed, "Of arrivals and lengths")
      ->capture_default_str();
  app.add_flag("--find-rate", find_rate,
               "Find the highest rate that meets --slo, within 1 %");
  app.add_flag("--sequence-reads", sequence_reads,
               "Count also what passes read of KV caches and states, which a "
               "plan's times leave out");
  app.add_option("--coordinator-time", coordinator_time,
                 "Count also what the coordinator takes for a frame, as 30us");
}

absl::Status LoadFlags::Check() const {
  const int ways = (rate ? 1 : 0) + (concurrency ? 1 : 0) +
                   (trace.empty() ? 0 : 1) + (find_rate ? 1 : 0);
  if (ways != 1) {
    return UsageError(
        "simulate",
        ways == 0 ? "needs to know how requests arrive"
                  : "has more than one way for requests to arrive",
        "give one of --rate, --concurrency, --trace and --find-rate");
  }
  if (find_rate && slo.empty()) {
    return UsageError("--find-rate", "needs limits to meet",
                      "give --slo, as ttft=2s,tpot=50ms");
  }
  if (rate) {
    MILLRACE_RETURN_IF_ERROR(CheckRange("--rate", *rate, 1e-6, 1e9));
  }
  if (concurrency) {
    MILLRACE_RETURN_IF_ERROR(
        CheckRange("--concurrency", *concurrency, kConcurrencyMax));
  }
  if (requests) {
    MILLRACE_RETURN_IF_ERROR(CheckRange("--requests", *requests, kRequestsMax));
  }
  MILLRACE_RETURN_IF_ERROR(CheckRange("--burstiness", burstiness, 0.01, 1e6));
  MILLRACE_RETURN_IF_ERROR(CheckRange("--range-ratio", range_ratio, 0, 1));
  MILLRACE_RETURN_IF_ERROR(
      CheckRange("--input-len", input_len, coordinator::kTokensMax));
  return CheckRange("--output-len", output_len, coordinator::kTokensMax);
}

// What no request could be served with is a wrong question, not a load.
absl::Status LoadFlags::CheckLengths(const Workload& workload,
                                     const SimulatedPipeline& pipeline) const {
  const int64_t longest =
      coordinator::KvLedger(pipeline.CoreConfigOf()).longest();
  const int64_t most = workload.input.Most() + workload.output.Most();
  if (workload.arrivals.trace.empty() && most > longest) {
    return UsageError(
        "--input-len and --output-len",
        absl::StrCat("are ", most, " tokens together, more than the ", longest,
                     " that the plan is made for"),
        "plan with a longer --context, or give shorter ones");
  }
  if (workload.arrivals.concurrency >
      kWaitingTokensMax / workload.input.Most()) {
    return UsageError(
        "--concurrency",
        absl::StrCat(workload.arrivals.concurrency, " prompts of up to ",
                     workload.input.Most(), " tokens are more than ",
                     kWaitingTokensMax, " tokens at once"),
        "give fewer clients or a shorter --input-len");
  }
  return absl::OkStatus();
}

absl::StatusOr<coordinator::BeyondPlan> LoadFlags::Beyond() const {
  coordinator::BeyondPlan beyond;
  beyond.sequence_reads = sequence_reads;
  if (!coordinator_time.empty()) {
    const absl::StatusOr<absl::Duration> time = ParseDuration(coordinator_time);
    if (!time.ok() || *time > absl::Seconds(1)) {
      return UsageError("--coordinator-time",
                        absl::StrCat("'", Printable(coordinator_time),
                                     "' is no duration from 0 to 1 s"),
                        "write it as 30us");
    }
    beyond.coordinator_s = absl::ToDoubleSeconds(*time);
  }
  return beyond;
}

absl::StatusOr<LoadOptions> LoadFlags::Options(
    const SimulatedPipeline& pipeline, const coordinator::GoOn& go_on) const {
  MILLRACE_RETURN_IF_ERROR(Check());
  LoadOptions options;
  MILLRACE_ASSIGN_OR_RETURN(options.limits, ParseServiceLimits(slo));
  Workload& workload = options.workload;
  workload.arrivals.rate = rate.value_or(0);
  workload.arrivals.burstiness = burstiness;
  workload.arrivals.concurrency = concurrency.value_or(0);
  workload.requests = requests.value_or(kRequestsDefault);
  workload.input = {.tokens = input_len, .spread = range_ratio};
  workload.output = {.tokens = output_len, .spread = range_ratio};
  workload.seed = seed;
  if (!trace.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text, ReadTrace(trace, go_on));
    MILLRACE_ASSIGN_OR_RETURN(workload.arrivals.trace,
                              coordinator::ParseTrace(text, trace, go_on));
    workload.requests = requests.value_or(kRequestsMax);
  }
  MILLRACE_RETURN_IF_ERROR(CheckLengths(workload, pipeline));
  if (!faults.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                              ReadFile(faults, kFileBytesMax));
    MILLRACE_ASSIGN_OR_RETURN(options.faults,
                              coordinator::ParseFaults(text, faults, pipeline));
  }
  return options;
}

absl::StatusOr<ServiceLimits> ParseServiceLimits(absl::string_view text) {
  ServiceLimits limits;
  if (text.empty()) {
    return limits;
  }
  const auto refused = [&](absl::string_view what) {
    return UsageError("--slo", what, "write it as ttft=2s,tpot=50ms,e2el=30s");
  };
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    std::optional<absl::Duration>* limit = pair.first == "ttft"   ? &limits.ttft
                                           : pair.first == "tpot" ? &limits.tpot
                                           : pair.first == "e2el" ? &limits.e2el
                                                                  : nullptr;
    if (limit == nullptr) {
      return refused(
          absl::StrCat("'", Printable(part), "' is none of ttft, tpot, e2el"));
    }
    if (limit->has_value()) {
      return refused(absl::StrCat(pair.first, " is given twice"));
    }
    const absl::StatusOr<absl::Duration> value = ParseDuration(pair.second);
    if (!value.ok() || *value <= absl::ZeroDuration() || *value > kLimitMax) {
      return refused(absl::StrCat(
          "'", Printable(part),
          "' is no duration greater than 0 and below a thousand hours"));
    }
    *limit = *value;
  }
  return limits;
}

}  // namespace millrace::cli
