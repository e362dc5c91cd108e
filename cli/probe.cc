#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/bench/available_memory.h"
#include "cli/bench/bench_report.h"
#include "cli/bench/format_product.h"
#include "cli/bench/machine_meter.h"
#include "cli/bench/node_entry.h"
#include "cli/bench/statistics.h"
#include "cli/commands.h"
#include "cli/compute_options.h"
#include "cli/host_name.h"
#include "cli/interrupt.h"
#include "cli/kernel_choices.h"
#include "cli/version.h"

namespace millrace::cli {
namespace {

// Rows of a prompt in one pass: what a plan divides operations by.
constexpr int64_t kTokens = 256;

class ProbeCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "probe"; }
  [[nodiscard]] const char* summary() const override {
    return "Measure this node, as an entry of a cluster file";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace probe --quick";
  }
  void Define(CLI::App& app) override;
  absl::Status Run(Console& console) override;

 private:
  // How long and how often a product is measured.
  [[nodiscard]] double Seconds() const { return quick_ ? 0.01 : 0.08; }
  [[nodiscard]] int Repeats() const { return quick_ ? 3 : 7; }

  absl::StatusOr<double> MeasureFormat(MachineMeter& meter,
                                       const kernels::KernelTable& table,
                                       kernels::WeightFormat format) const;
  absl::StatusOr<NodeEntry> MeasureNode(const ComputeOptions& compute,
                                        const kernels::KernelTable& table,
                                        Console& console,
                                        std::vector<MachineRates>& rates) const;

  bool quick_ = false;
  std::string peer_;
  std::optional<int64_t> threads_;
  std::string kernels_ = "auto";
};

void ProbeCommand::Define(CLI::App& app) {
  app.add_flag("--quick", quick_, "A few seconds, less exact");
  app.add_option("--peer", peer_, "Not in this version");
  app.add_option("--threads", threads_, "Threads; default: all cores");
  app.add_option("--kernels", kernels_, "auto, scalar, avx2, avx512 or neon");
}

absl::StatusOr<double> ProbeCommand::MeasureFormat(
    MachineMeter& meter, const kernels::KernelTable& table,
    kernels::WeightFormat format) const {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<FormatProduct> product,
      FormatProduct::Create(meter, table,
                            {format, kernels::ComputeMode::kFast, kTokens},
                            Seconds()));
  std::vector<double> rates;
  for (int i = 0; i < Repeats(); ++i) {
    rates.push_back(product->operations() / product->Run());
  }
  return Median(rates);
}

absl::StatusOr<NodeEntry> ProbeCommand::MeasureNode(
    const ComputeOptions& compute, const kernels::KernelTable& table,
    Console& console, std::vector<MachineRates>& rates) const {
  NodeEntry node;
  node.name = NodeName(HostName("node"));
  // Before anything is taken for measuring.
  node.memory_bytes = AvailableMemory();
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<MachineMeter> meter,
      MachineMeter::Create(compute.isa, compute.num_threads));
  for (int i = 0; i < Repeats(); ++i) {
    rates.push_back(meter->Measure());
  }
  node.memory_bandwidth = MedianRates(rates).memory_bandwidth;
  for (int i = 0; i < kernels::kNumWeightFormats; ++i) {
    const auto format = static_cast<kernels::WeightFormat>(i);
    const char* name = kernels::TraitsOf(format).name;
    console.Progress(absl::StrCat("measuring ", name));
    MILLRACE_ASSIGN_OR_RETURN(const double rate,
                              MeasureFormat(*meter, table, format));
    node.compute.emplace_back(name, rate);
    if (Interrupts() > 0) {
      return absl::CancelledError("interrupted while measuring");
    }
  }
  console.Progress("");
  return node;
}

boost::json::array ChoicesJson(const kernels::KernelTable& table) {
  boost::json::array out;
  for (const kernels::KernelChoice& choice : kernels::DescribeKernels(table)) {
    out.push_back(boost::json::object{{"kernel", choice.kernel},
                                      {"format", choice.format},
                                      {"compute", choice.compute},
                                      {"version", choice.version}});
  }
  return out;
}

absl::Status ProbeCommand::Run(Console& console) {
  if (!peer_.empty()) {
    return UsageError("--peer", "is not in this version of millrace");
  }
  ComputeFlags flags;
  flags.threads = threads_;
  flags.kernels = kernels_;
  MILLRACE_ASSIGN_OR_RETURN(const ComputeOptions compute,
                            Validate(flags, false));
  const kernels::KernelTable table = kernels::BuildKernelTable(compute.isa);
  std::vector<MachineRates> rates;
  MILLRACE_ASSIGN_OR_RETURN(const NodeEntry node,
                            MeasureNode(compute, table, console, rates));
  const std::vector<std::string> lacking = LackingVersions();
  if (console.json()) {
    boost::json::array lacks;
    for (const std::string& version : lacking) {
      lacks.push_back(Json(boost::json::string(version)));
    }
    console.OutJson(
        boost::json::object{{"node", NodeJson(node)},
                            {"version", Version()},
                            {"host", HostJson()},
                            {"threads", compute.num_threads},
                            {"kernels", ChoicesJson(table)},
                            {"lacks", std::move(lacks)},
                            {"machine", RatesJson(MedianRates(rates))}});
    return absl::OkStatus();
  }
  console.Out(absl::StrFormat("# %d threads; %s\n", compute.num_threads,
                              RatesText(MedianRates(rates))));
  for (const std::string& line : KernelLines(kernels::DescribeKernels(table))) {
    console.Out(absl::StrCat("# ", line, "\n"));
  }
  console.Out(absl::StrCat(
      "# lacks: ", lacking.empty() ? "nothing" : absl::StrJoin(lacking, ", "),
      "\n", NodeYaml(node)));
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeProbeCommand() {
  return std::make_unique<ProbeCommand>();
}

}  // namespace millrace::cli
