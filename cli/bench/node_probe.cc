#include "cli/bench/node_probe.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/bench/available_memory.h"
#include "cli/bench/bench_report.h"
#include "cli/bench/format_product.h"
#include "cli/bench/time_limit.h"

namespace millrace::cli {
namespace {

// Rows of sequences that decode together, and of a piece of a prompt.
constexpr int64_t kDecodeRows = 16;
constexpr int64_t kPromptRows = 256;
// Part of a product's time that is not reading, at least.
constexpr double kComputePart = 0.2;

// How long one number is measured in one round, how many rounds there are, and
// when no further one begins. Long enough for the clock and for some products;
// long beside the period of a control group's quota, 100 ms, a round of all
// formats would take ten seconds. Where such a group stops the process, some
// windows hold a stop and others none, and the spread of the rounds shows it.
struct Pace {
  absl::Duration window;
  int rounds;
  absl::Duration limit;
};
constexpr Pace kQuick = {
    .window = absl::Milliseconds(20), .rounds = 3, .limit = absl::Seconds(10)};
constexpr Pace kThorough = {
    .window = absl::Milliseconds(50), .rounds = 5, .limit = absl::Seconds(60)};
// Of memory, which every other number hangs on.
constexpr int kMemoryWindows = 4;

// Rates of one format, a value a round.
struct Rounds {
  std::vector<double> decode;
  std::vector<double> prompt;
};

class Prober {
 public:
  Prober(const NodeProbeOptions& options, MachineMeter& meter)
      : options_(options),
        pace_(options.quick ? kQuick : kThorough),
        meter_(meter),
        table_(kernels::BuildKernelTable(options.isa)),
        formats_(options.formats.size()) {}

  absl::Status RunRounds();
  [[nodiscard]] NodeProbe Result() const;

 private:
  absl::Status RunRound();
  // Mean time of a product of so many rows, and its work.
  struct Timed {
    absl::Duration time;
    double operations, bytes;
  };
  absl::StatusOr<Timed> Time(kernels::WeightFormat format, int64_t rows);

  const NodeProbeOptions& options_;
  const Pace pace_;
  MachineMeter& meter_;
  const kernels::KernelTable table_;
  std::vector<double> bandwidths_;
  std::vector<MachineRates> machine_;
  std::vector<Rounds> formats_;
};

absl::StatusOr<Prober::Timed> Prober::Time(kernels::WeightFormat format,
                                           int64_t rows) {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<FormatProduct> product,
      FormatProduct::Create(meter_, table_,
                            {format, kernels::ComputeMode::kFast, rows},
                            pace_.window / 2));
  const absl::Duration time = product->MeanTime(pace_.window);
  MILLRACE_RETURN_IF_ERROR(TimeLimit().CheckInterrupt());
  return Timed{time, product->operations(),
               static_cast<double>(product->weight_bytes())};
}

absl::Status Prober::RunRound() {
  const double bandwidth = meter_.MeanBandwidth(kMemoryWindows * pace_.window);
  machine_.push_back(meter_.Measure());
  MILLRACE_RETURN_IF_ERROR(TimeLimit().CheckInterrupt());
  bandwidths_.push_back(bandwidth);
  for (size_t i = 0; i < formats_.size(); ++i) {
    const kernels::WeightFormat format = options_.formats[i];
    options_.progress(absl::StrCat("round ", bandwidths_.size(), ": ",
                                   kernels::TraitsOf(format).name));
    MILLRACE_ASSIGN_OR_RETURN(const Timed decode, Time(format, kDecodeRows));
    MILLRACE_ASSIGN_OR_RETURN(const Timed prompt, Time(format, kPromptRows));
    formats_[i].decode.push_back(RateBesideReading(
        decode.operations, decode.bytes, bandwidth, decode.time));
    formats_[i].prompt.push_back(prompt.operations /
                                 absl::ToDoubleSeconds(prompt.time));
  }
  return absl::OkStatus();
}

absl::Status Prober::RunRounds() {
  const TimeLimit limit(pace_.limit);
  int rounds = 0;
  do {
    MILLRACE_RETURN_IF_ERROR(RunRound());
    ++rounds;
  } while (rounds < pace_.rounds && !limit.Over());
  return absl::OkStatus();
}

NodeProbe Prober::Result() const {
  NodeProbe probe;
  probe.machine = MedianRates(machine_);
  probe.node.memory_bandwidth = SpreadOf(bandwidths_);
  for (size_t i = 0; i < formats_.size(); ++i) {
    probe.node.compute.push_back({kernels::TraitsOf(options_.formats[i]).name,
                                  SpreadOf(formats_[i].decode),
                                  SpreadOf(formats_[i].prompt)});
  }
  return probe;
}

}  // namespace

double RateBesideReading(double operations, double bytes, double bandwidth,
                         absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  return operations /
         std::max(seconds - bytes / bandwidth, kComputePart * seconds);
}

absl::StatusOr<NodeProbe> ProbeNode(const NodeProbeOptions& options) {
  // Before anything is taken for measuring.
  const int64_t memory = AvailableMemory();
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<MachineMeter> meter,
      MachineMeter::Create(options.isa, options.num_threads));
  Prober prober(options, *meter);
  MILLRACE_RETURN_IF_ERROR(prober.RunRounds());
  NodeProbe probe = prober.Result();
  probe.node.memory_bytes = memory;
  probe.warning = meter->Warning();
  return probe;
}

}  // namespace millrace::cli
