#include "cli/bench/model_cases.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "cli/bench/bench_report.h"
#include "cli/bench/time_limit.h"
#include "cli/version.h"
#include "model/spec/model_costs.h"

namespace millrace::cli {
namespace {

std::optional<double> Ratio(const std::optional<double>& part,
                            const std::optional<double>& whole) {
  return part.has_value() && whole.has_value()
             ? std::optional<double>(*part / *whole)
             : std::nullopt;
}

// What is shown of one run, or of the medians of all.
struct Numbers {
  double tokens = 0;
  double tokens_per_s = 0;
  double seconds = 0;
  double operations_per_s = 0;
  std::optional<double> weight_bytes_per_s;
  std::optional<double> memory_share;
  std::optional<double> peak_share;
};

Numbers NumbersOf(const ModelCase& measured, const ModelSample& sample) {
  return {.tokens = static_cast<double>(sample.tokens),
          .tokens_per_s = sample.tokens_per_s,
          .seconds = sample.seconds,
          .operations_per_s = measured.OperationsPerSecond(sample),
          .weight_bytes_per_s = measured.WeightBytesPerSecond(sample),
          .memory_share = measured.MemoryShare(sample),
          .peak_share = measured.PeakShare(sample)};
}

Numbers MediansOf(const ModelCase& measured) {
  const auto median = [&](const auto member) {
    std::vector<std::remove_cvref_t<decltype(Numbers().*member)>> values;
    for (const ModelSample& sample : measured.samples) {
      values.push_back(NumbersOf(measured, sample).*member);
    }
    return Median(values);
  };
  return {.tokens = median(&Numbers::tokens),
          .tokens_per_s = median(&Numbers::tokens_per_s),
          .seconds = median(&Numbers::seconds),
          .operations_per_s = median(&Numbers::operations_per_s),
          .weight_bytes_per_s = median(&Numbers::weight_bytes_per_s),
          .memory_share = median(&Numbers::memory_share),
          .peak_share = median(&Numbers::peak_share)};
}

boost::json::object ToJson(const Numbers& numbers, const char* seconds_key) {
  return {{"tokens", static_cast<int64_t>(numbers.tokens)},
          {"tokens_per_s", numbers.tokens_per_s},
          {seconds_key, numbers.seconds},
          {"operations_per_s", numbers.operations_per_s},
          {"weight_bytes_per_s", NumberOrNull(numbers.weight_bytes_per_s)},
          {"memory_share", NumberOrNull(numbers.memory_share)},
          {"peak_share", NumberOrNull(numbers.peak_share)}};
}

boost::json::object ToJson(const ModelCase& measured, const char* seconds_key) {
  boost::json::object out = ToJson(MediansOf(measured), seconds_key);
  out["batch"] = measured.load.batch;
  out["prompt_len"] = measured.load.prompt_len;
  out["output_len"] = measured.load.output_len;
  out["operations_per_token"] = measured.work.total();
  out["weight_bytes_per_token"] = NumberOrNull(measured.weight_bytes);
  boost::json::array repeats;
  for (const ModelSample& sample : measured.samples) {
    boost::json::object repeat =
        ToJson(NumbersOf(measured, sample), seconds_key);
    repeat["machine"] = RatesJson(sample.rates);
    repeats.push_back(std::move(repeat));
  }
  out["repeats"] = std::move(repeats);
  return out;
}

std::string HeadOf(const ModelBenchKind& kind) {
  return absl::StrFormat("\n%5s %6s %6s %9s %9s %13s %7s %7s %8s %8s\n",
                         "batch", "prompt", "output", "tokens/s",
                         kind.seconds_name, "weights/token", "GB/s", "of mem.",
                         "GOPS", "of peak");
}

std::string RowOf(const ModelCase& measured) {
  const Numbers numbers = MediansOf(measured);
  return absl::StrFormat(
      "%5d %6d %6d %9.1f %9s %13s %7s %7s %8s %8s\n", measured.load.batch,
      measured.load.prompt_len, measured.load.output_len, numbers.tokens_per_s,
      HumanDuration(absl::Seconds(numbers.seconds)),
      measured.weight_bytes.has_value()
          ? HumanSize(static_cast<int64_t>(*measured.weight_bytes))
          : "-",
      BillionsText(numbers.weight_bytes_per_s),
      PercentText(numbers.memory_share), BillionsText(numbers.operations_per_s),
      PercentText(numbers.peak_share));
}

absl::StatusOr<ModelCase> Measure(ModelBench& bench, const ModelBenchKind& kind,
                                  const BenchLoad& load, int64_t repeat) {
  ModelCase measured;
  measured.load = load;
  kind.cost(bench, measured);
  MILLRACE_RETURN_IF_ERROR(bench.Run(load).status());
  for (int64_t i = 0; i < repeat; ++i) {
    const MachineRates rates = bench.MeasureMachine();
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<SequenceTimes> times,
                              bench.Run(load));
    ModelSample sample = kind.sample(load, times);
    if (sample.tokens == 0) {
      return UsageError(
          "--output-len",
          "is too short: the first sequences ended before all decoded at once",
          "give a larger --output-len, and --context where it is given");
    }
    sample.rates = rates;
    measured.samples.push_back(sample);
  }
  return measured;
}

}  // namespace

double ModelCase::OperationsPerSecond(const ModelSample& sample) const {
  return work.total() * sample.tokens_per_s;
}

std::optional<double> ModelCase::WeightBytesPerSecond(
    const ModelSample& sample) const {
  return weight_bytes.has_value()
             ? std::optional<double>(*weight_bytes * sample.tokens_per_s)
             : std::nullopt;
}

std::optional<double> ModelCase::MemoryShare(const ModelSample& sample) const {
  return Ratio(WeightBytesPerSecond(sample), sample.rates.memory_bandwidth);
}

std::optional<double> ModelCase::PeakShare(const ModelSample& sample) const {
  return Ratio(OperationsPerSecond(sample), CeilingOf(work, sample.rates));
}

absl::Status RunModelBench(ModelBench& bench, const ModelBenchKind& kind,
                           const std::vector<BenchLoad>& loads, int64_t repeat,
                           Console& console) {
  SetLogLevel(LogLevel::kWarning);
  MILLRACE_RETURN_IF_ERROR(bench.Start(loads, console));
  if (!console.json()) {
    const MachineRates rates = bench.MeasureMachine();
    // What an interrupt ended is no rate.
    MILLRACE_RETURN_IF_ERROR(TimeLimit().CheckInterrupt());
    console.Out(absl::StrCat(bench.Title(), "\n", RatesText(rates), "\n",
                             HeadOf(kind)));
  }
  const std::string warning = bench.MachineWarning();
  console.Warn(warning);
  boost::json::array results;
  std::vector<MachineRates> rates;
  for (const BenchLoad& load : loads) {
    console.Progress(absl::StrCat("measuring ", kind.name, ": batch ",
                                  load.batch, ", prompt ", load.prompt_len,
                                  ", output ", load.output_len));
    MILLRACE_ASSIGN_OR_RETURN(const ModelCase measured,
                              Measure(bench, kind, load, repeat));
    console.Progress("");
    for (const ModelSample& sample : measured.samples) {
      rates.push_back(sample.rates);
    }
    if (console.json()) {
      results.push_back(ToJson(measured, kind.seconds_key));
    } else {
      console.Out(RowOf(measured));
      MILLRACE_RETURN_IF_ERROR(console.OutStatus());
    }
  }
  if (console.json()) {
    boost::json::object out = bench.Describe();
    out["bench"] = kind.name;
    out["version"] = Version();
    out["host"] = HostJson();
    out["machine"] = RatesJson(MedianRates(rates));
    out["warning"] = TextOrNull(warning);
    out["results"] = std::move(results);
    console.OutJson(out);
  }
  return absl::OkStatus();
}

ModelBenchKind DecodeKind(const char* name) {
  ModelBenchKind kind;
  kind.name = name;
  kind.seconds_key = "tpot_s";
  kind.seconds_name = "TPOT";
  kind.cost = [](const ModelBench& bench, ModelCase& measured) {
    const BenchLoad& load = measured.load;
    // Keys that a token sees, in the mean of those that are measured.
    const int64_t keys =
        load.prompt_len + load.TokensMax(bench.compute()) / 2 + 1;
    measured.work = DecodeWork(bench.spec(), bench.compute().compute, keys);
    if (const auto reads = bench.ReadsPerRound(load.batch); reads.has_value()) {
      measured.weight_bytes =
          *reads / static_cast<double>(load.batch) *
          static_cast<double>(
              model::CostsOf(bench.spec()).read_bytes_per_token);
    }
  };
  kind.sample = [](const BenchLoad& /*load*/,
                   const std::vector<SequenceTimes>& times) {
    const DecodeRate rate = CommonDecodeRate(times);
    ModelSample sample;
    sample.tokens = rate.tokens;
    sample.tokens_per_s = rate.tokens_per_s;
    sample.seconds = rate.token_seconds;
    return sample;
  };
  return kind;
}

}  // namespace millrace::cli
