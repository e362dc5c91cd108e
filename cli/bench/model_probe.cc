#include "cli/bench/model_probe.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/status_macros.h"
#include "cli/bench/available_memory.h"
#include "cli/bench/model_bench.h"
#include "cli/bench/model_work.h"
#include "cli/bench/statistics.h"
#include "cli/bench/time_limit.h"
#include "model/spec/model_costs.h"

namespace millrace::cli {
namespace {

constexpr int64_t kSequences = 16;
constexpr int64_t kPromptLen = 8;
constexpr int64_t kTokens = 24;
// Of a row's or a pass's time, at least: a rate is never without bound.
constexpr double kLeastPart = 0.02;

// Tokens per second of so many sequences of `load` while all decode.
absl::StatusOr<double> TokensPerSecond(ModelBench& bench, BenchLoad load,
                                       int64_t sequences) {
  load.batch = sequences;
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<SequenceTimes> times,
                            bench.Run(load));
  const DecodeRate rate = CommonDecodeRate(times);
  if (rate.tokens == 0) {
    return MakeError(absl::StatusCode::kUnavailable, "probe",
                     "sequences did not decode together on so busy a machine",
                     "try again");
  }
  return rate.tokens_per_s;
}

}  // namespace

PassLine LineThrough(double few, double few_s, double many, double many_s) {
  PassLine line;
  line.row_s =
      std::clamp((many_s - few_s) / (many - few), kLeastPart * few_s / few,
                 (1 - kLeastPart) * few_s / few);
  line.fixed_s = few_s - few * line.row_s;
  return line;
}

absl::StatusOr<NodeEntry> ProbeModel(const ModelProbeOptions& options,
                                     Console& console) {
  NodeEntry node;
  node.memory_bytes = AvailableMemory();
  ModelBenchFlags flags;
  flags.model = options.model;
  flags.compute = options.compute;
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<ModelBench> bench,
                            ModelBench::Open(flags));
  if (HasExperts(bench->spec())) {
    return UsageError("--model",
                      "has experts, of which more rows read more: it is not "
                      "measured by whole passes in this version",
                      "leave --model out");
  }
  const BenchLoad load = {.batch = kSequences,
                          .prompt_len = bench->LengthOr({}, kPromptLen),
                          .output_len = bench->LengthOr({}, kTokens)};
  MILLRACE_RETURN_IF_ERROR(bench->Start({load}, console));
  // Micro-batches that circulate: so many sequences make passes of one row.
  const auto circulating =
      static_cast<int64_t>(bench->ReadsPerRound(kSequences).value_or(1));
  const double many = static_cast<double>(kSequences / circulating);
  const model::PartCosts costs = model::CostsOf(bench->spec());
  const TimeLimit limit(options.quick ? absl::Seconds(10) : absl::Seconds(60));
  const int rounds = options.quick ? 3 : 7;
  std::vector<double> bandwidths;
  std::vector<double> rates;
  MILLRACE_RETURN_IF_ERROR(TokensPerSecond(*bench, load, circulating).status());
  for (int round = 0; round < rounds && (round == 0 || !limit.Over());
       ++round) {
    MILLRACE_ASSIGN_OR_RETURN(const double one,
                              TokensPerSecond(*bench, load, circulating));
    MILLRACE_ASSIGN_OR_RETURN(const double all,
                              TokensPerSecond(*bench, load, kSequences));
    // One stage works on one pass at a time.
    const PassLine line = LineThrough(1, 1 / one, many, many / all);
    bandwidths.push_back(static_cast<double>(costs.read_bytes_per_token) /
                         line.fixed_s);
    rates.push_back(costs.operations_per_token / line.row_s);
  }
  node.memory_bandwidth = SpreadOf(bandwidths);
  node.compute.push_back({"default", SpreadOf(rates), {}});
  return node;
}

}  // namespace millrace::cli
