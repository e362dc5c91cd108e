#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/bench/bench_options.h"
#include "cli/bench/bench_report.h"
#include "cli/bench/format_product.h"
#include "cli/bench/machine_meter.h"
#include "cli/bench/statistics.h"
#include "cli/bench/time_limit.h"
#include "cli/commands.h"
#include "cli/compute_options.h"
#include "cli/kernel_choices.h"
#include "cli/number_checks.h"
#include "cli/version.h"

namespace millrace::cli {
namespace {

using kernels::ComputeMode;
using kernels::WeightFormat;

constexpr int64_t kTokensMax = 4096;
// Of one product: long beside the clock, short enough for ninety-six cases.
constexpr absl::Duration kProductTime = absl::Milliseconds(40);

// One product, once, and what the machine could do right before.
struct Sample {
  double seconds = 0;
  double memory_bandwidth = 0;
  std::optional<double> peak;
};

struct Case {
  FormatProduct::Shape shape;
  const char* version = "";
  int64_t rows = 0;
  int64_t weight_bytes = 0;
  double operations = 0;
  std::vector<Sample> samples;

  // The median over the samples of what `value` makes of one.
  template <typename Value>
  [[nodiscard]] auto MedianOf(Value value) const {
    std::vector<decltype(value(samples[0]))> values;
    for (const Sample& sample : samples) {
      values.push_back(value(sample));
    }
    return Median(values);
  }
  [[nodiscard]] double BytesPerSecond(const Sample& sample) const {
    return static_cast<double>(weight_bytes) / sample.seconds;
  }
  [[nodiscard]] double MemoryShare(const Sample& sample) const {
    return BytesPerSecond(sample) / sample.memory_bandwidth;
  }
  [[nodiscard]] double OperationsPerSecond(const Sample& sample) const {
    return operations / sample.seconds;
  }
  [[nodiscard]] std::optional<double> PeakShare(const Sample& sample) const {
    return sample.peak.has_value()
               ? std::optional<double>(OperationsPerSecond(sample) /
                                       *sample.peak)
               : std::nullopt;
  }
};

class BenchKernelsCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "kernels"; }
  [[nodiscard]] const char* summary() const override {
    return "Matrix products of every weight format beside what bounds them";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace bench kernels --format q8_0,q4_0";
  }
  void Define(CLI::App& app) override;
  absl::Status Run(Console& console) override;

 private:
  absl::StatusOr<std::vector<FormatProduct::Shape>> Shapes() const;
  absl::StatusOr<Case> Measure(MachineMeter& meter,
                               const kernels::KernelTable& table,
                               const FormatProduct::Shape& shape,
                               const TimeLimit& limit) const;

  std::string formats_;
  std::string computes_ = "fast,exact";
  std::string tokens_ = "1,512";
  std::optional<int64_t> threads_;
  std::string kernels_ = "auto";
  int64_t repeat_ = 5;
  std::string limit_ = "5m";
};

void BenchKernelsCommand::Define(CLI::App& app) {
  app.add_option("--format", formats_,
                 "Weight formats, as q8_0,q4_0; default: all");
  app.add_option("--compute", computes_, "fast, exact or both, as fast,exact");
  app.add_option("--tokens", tokens_,
                 "Tokens that one product takes, as 1,512");
  app.add_option("--threads", threads_, "Threads; default: all cores");
  app.add_option("--kernels", kernels_, "auto, scalar, avx2, avx512 or neon");
  app.add_option("--repeat", repeat_, "Times that each is measured");
  app.add_option("--limit", limit_,
                 "After this time, as 30s, the rest is left out; the first "
                 "product never is");
}

absl::StatusOr<std::vector<FormatProduct::Shape>> BenchKernelsCommand::Shapes()
    const {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<WeightFormat> formats,
                            ParseFormats(formats_));
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<ComputeMode> computes,
                            ParseComputes(computes_));
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> tokens,
                            ParseCounts("--tokens", tokens_, kTokensMax));
  std::vector<FormatProduct::Shape> shapes;
  for (const WeightFormat format : formats) {
    for (const ComputeMode compute : computes) {
      for (const int64_t count : tokens) {
        shapes.push_back({format, compute, count});
      }
    }
  }
  return shapes;
}

absl::StatusOr<Case> BenchKernelsCommand::Measure(
    MachineMeter& meter, const kernels::KernelTable& table,
    const FormatProduct::Shape& shape, const TimeLimit& limit) const {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<FormatProduct> product,
      FormatProduct::Create(meter, table, shape, kProductTime));
  Case measured;
  measured.shape = shape;
  measured.version = ProductVersion(table, shape.format, shape.compute);
  measured.rows = product->rows();
  measured.weight_bytes = product->weight_bytes();
  measured.operations = product->operations();
  product->Run();
  const kernels::Peak peak = kernels::PeakOf(shape.compute, shape.format);
  for (int64_t i = 0; i < repeat_; ++i) {
    Sample sample;
    sample.memory_bandwidth = meter.MeasureBandwidth();
    MachineRates rates;
    for (const kernels::Peak each : {peak, kernels::Peak::kFma}) {
      rates.peaks[static_cast<size_t>(each)] = meter.MeasurePeak(each);
    }
    sample.peak = rates.PeakFor(peak);
    sample.seconds = absl::ToDoubleSeconds(product->Run());
    MILLRACE_RETURN_IF_ERROR(limit.CheckInterrupt());
    measured.samples.push_back(sample);
    if (limit.Over()) {
      break;
    }
  }
  return measured;
}

boost::json::object ToJson(const Case& measured) {
  const auto sample_json = [&](const Sample& sample) {
    return boost::json::object{
        {"seconds", sample.seconds},
        {"bytes_per_s", measured.BytesPerSecond(sample)},
        {"operations_per_s", measured.OperationsPerSecond(sample)},
        {"memory_bandwidth", sample.memory_bandwidth},
        {"memory_share", measured.MemoryShare(sample)},
        {"peak", NumberOrNull(sample.peak)},
        {"peak_share", NumberOrNull(measured.PeakShare(sample))}};
  };
  boost::json::array repeats;
  for (const Sample& sample : measured.samples) {
    repeats.push_back(sample_json(sample));
  }
  const FormatProduct::Shape& shape = measured.shape;
  boost::json::object out = {{"format", kernels::TraitsOf(shape.format).name},
                             {"compute", ComputeName(shape.compute)},
                             {"tokens", shape.tokens},
                             {"version", measured.version},
                             {"rows", measured.rows},
                             {"cols", FormatProduct::kCols},
                             {"weight_bytes", measured.weight_bytes},
                             {"bound_by", kernels::PeakName(kernels::PeakOf(
                                              shape.compute, shape.format))}};
  using Key = const Sample&;
  out["seconds"] = measured.MedianOf([](Key s) { return s.seconds; });
  out["bytes_per_s"] =
      measured.MedianOf([&](Key s) { return measured.BytesPerSecond(s); });
  out["memory_share"] =
      measured.MedianOf([&](Key s) { return measured.MemoryShare(s); });
  out["operations_per_s"] =
      measured.MedianOf([&](Key s) { return measured.OperationsPerSecond(s); });
  out["peak_share"] = NumberOrNull(
      measured.MedianOf([&](Key s) { return measured.PeakShare(s); }));
  out["repeats"] = std::move(repeats);
  return out;
}

std::string RowOf(const Case& measured) {
  using Key = const Sample&;
  const FormatProduct::Shape& shape = measured.shape;
  const double seconds = measured.MedianOf([](Key s) { return s.seconds; });
  return absl::StrFormat(
      "%-14s %-6s %6d  %-10s %9s %8s %7s %8s %7s %s\n",
      kernels::TraitsOf(shape.format).name, ComputeName(shape.compute),
      shape.tokens, measured.version, HumanDuration(absl::Seconds(seconds)),
      BillionsText(
          measured.MedianOf([&](Key s) { return measured.BytesPerSecond(s); })),
      PercentText(
          measured.MedianOf([&](Key s) { return measured.MemoryShare(s); })),
      BillionsText(measured.MedianOf(
          [&](Key s) { return measured.OperationsPerSecond(s); })),
      PercentText(
          measured.MedianOf([&](Key s) { return measured.PeakShare(s); })),
      kernels::PeakName(kernels::PeakOf(shape.compute, shape.format)));
}

absl::Status BenchKernelsCommand::Run(Console& console) {
  ComputeFlags flags;
  flags.kernels = kernels_;
  MILLRACE_ASSIGN_OR_RETURN(const ComputeOptions compute,
                            Validate(flags, false));
  MILLRACE_ASSIGN_OR_RETURN(const int threads, MeasuringThreads(threads_));
  MILLRACE_RETURN_IF_ERROR(CheckCount("--repeat", repeat_, 1, kRepeatMax));
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<FormatProduct::Shape> shapes,
                            Shapes());
  absl::StatusOr<absl::Duration> time = ParseDuration(limit_);
  if (!time.ok()) {
    return WithObject(time.status(), "--limit");
  }
  if (*time == absl::ZeroDuration()) {
    return UsageError("--limit", "leaves no time to measure in",
                      "give a time, as 30s, or leave it out");
  }
  const TimeLimit limit(*time);
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<MachineMeter> meter,
                            MachineMeter::Create(compute.isa, threads));
  const kernels::KernelTable table = kernels::BuildKernelTable(compute.isa);
  const MachineRates rates = meter->Measure();
  MILLRACE_RETURN_IF_ERROR(limit.CheckInterrupt());
  const absl::string_view isa = kernels::IsaName(compute.isa);
  if (!console.json()) {
    console.Out(absl::StrFormat(
        "%s, %s kernels; %s\n\n%-14s %-6s %6s  %-10s %9s %8s %7s %8s "
        "%7s %s\n",
        Counted(threads, "thread"), isa, RatesText(rates), "format", "mode",
        "tokens", "version", "time", "GB/s", "of it", "GOPS", "of it", "peak"));
  }
  const std::string warning = meter->Warning();
  console.Warn(warning);
  boost::json::array results;
  size_t done = 0;
  for (; done < shapes.size() && (done == 0 || !limit.Over()); ++done) {
    console.Progress(absl::StrFormat("%d of %d products", done, shapes.size()));
    MILLRACE_ASSIGN_OR_RETURN(const Case measured,
                              Measure(*meter, table, shapes[done], limit));
    if (console.json()) {
      results.push_back(ToJson(measured));
    } else {
      console.Progress("");
      console.Out(RowOf(measured));
      MILLRACE_RETURN_IF_ERROR(console.OutStatus());
    }
  }
  console.Progress("");
  MILLRACE_RETURN_IF_ERROR(limit.CheckInterrupt());
  const size_t left_out = shapes.size() - done;
  if (left_out > 0) {
    console.Note(absl::StrCat(left_out, " of ", shapes.size(),
                              " products left out: --limit ", limit_,
                              " is over"));
  }
  if (console.json()) {
    console.OutJson(boost::json::object{{"bench", "kernels"},
                                        {"version", Version()},
                                        {"host", HostJson()},
                                        {"threads", threads},
                                        {"kernels", std::string(isa)},
                                        {"machine", RatesJson(rates)},
                                        {"warning", TextOrNull(warning)},
                                        {"left_out", left_out},
                                        {"results", std::move(results)}});
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeBenchKernelsCommand() {
  return std::make_unique<BenchKernelsCommand>();
}

}  // namespace millrace::cli
