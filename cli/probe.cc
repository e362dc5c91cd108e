#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/bench/bench_options.h"
#include "cli/bench/bench_report.h"
#include "cli/bench/disk_probe.h"
#include "cli/bench/model_probe.h"
#include "cli/bench/node_entry.h"
#include "cli/bench/node_probe.h"
#include "cli/bench/statistics.h"
#include "cli/commands.h"
#include "cli/compute_options.h"
#include "cli/endpoint_option.h"
#include "cli/host_name.h"
#include "cli/interrupt.h"
#include "cli/interrupt_flag.h"
#include "cli/kernel_choices.h"
#include "cli/node_answers.h"
#include "cli/number_checks.h"
#include "cli/version.h"
#include "stage-worker/server/node_client.h"
#include "stage-worker/server/node_service.h"
#include "transport/endpoint.h"

namespace millrace::cli {
namespace {

// For a peer to say who it is.
constexpr absl::Duration kAskTimeout = absl::Seconds(3);

// A way of measuring, and an option that it has no use for.
constexpr std::pair<absl::string_view, absl::string_view> kUnused[] = {
    {"--peer", "--listen"},   {"--peer", "--model"},   {"--peer", "--format"},
    {"--peer", "--nvme"},     {"--peer", "--record"},  {"--peer", "--threads"},
    {"--peer", "--kernels"},  {"--listen", "--model"}, {"--listen", "--quick"},
    {"--listen", "--format"}, {"--listen", "--nvme"},  {"--listen", "--record"},
    {"--model", "--format"},  {"--model", "--nvme"},   {"--model", "--record"},
    {"--model", "--insecure"}};

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
  [[nodiscard]] bool Given(absl::string_view option) const {
    return app_->count(std::string(option)) > 0;
  }
  [[nodiscard]] absl::Status CheckFlags() const;
  [[nodiscard]] std::string Name() const {
    return NodeName(name_.empty() ? HostName("node") : name_);
  }
  absl::StatusOr<NodeProbeOptions> ProbeOptions(Console& console) const;
  absl::Status MeasureByModel(Console& console) const;
  absl::Status MeasureThis(Console& console, const NodeProbeOptions& options);
  absl::Status MeasureLink(Console& console) const;
  // Answers others until an interrupt.
  absl::Status Listen(Console& console, const NodeProbeOptions& options) const;

  bool quick_ = false;
  std::string name_;
  std::string formats_;
  std::string model_;
  std::string nvme_;
  std::string record_;
  std::string peer_;
  std::string listen_;
  bool insecure_ = false;
  std::optional<int64_t> threads_;
  std::string kernels_ = "auto";
  const CLI::App* app_ = nullptr;  // what was given
};

void ProbeCommand::Define(CLI::App& app) {
  app_ = &app;
  app.add_flag("--quick", quick_, "A few seconds, less exact");
  app.add_option("--name", name_,
                 "Name of the entry; default: the host's name");
  app.add_option("--format", formats_,
                 "Weight formats, as q8_0,q4_0; default: all");
  app.add_option("--model", model_,
                 "Measure by whole passes of this model, which must fit here");
  app.add_option("--nvme", nvme_, "Measure the disk of this folder as well");
  app.add_option("--record", record_,
                 "Bytes of one read from it, as an expert's 12MB; default: "
                 "4MiB");
  app.add_option("--peer", peer_,
                 "Measure the link to another node instead: HOST:PORT of its "
                 "`probe --listen` or `stage-worker --control`");
  app.add_option("--listen", listen_,
                 "Measure nothing and answer other nodes' --peer, HOST:PORT");
  app.add_flag("--insecure", insecure_,
               "The network is trusted: listen and dial off loopback");
  app.add_option("--threads", threads_, "Threads; default: all cores");
  app.add_option("--kernels", kernels_, "auto, scalar, avx2, avx512 or neon");
}

absl::StatusOr<NodeProbeOptions> ProbeCommand::ProbeOptions(
    Console& console) const {
  ComputeFlags flags;
  flags.kernels = kernels_;
  MILLRACE_ASSIGN_OR_RETURN(const ComputeOptions compute,
                            Validate(flags, false));
  NodeProbeOptions options;
  options.isa = compute.isa;
  options.quick = quick_;
  MILLRACE_ASSIGN_OR_RETURN(options.num_threads, MeasuringThreads(threads_));
  MILLRACE_ASSIGN_OR_RETURN(options.formats, ParseFormats(formats_));
  options.progress = [&console](const std::string& what) {
    console.Progress(what);
  };
  return options;
}

absl::StatusOr<int64_t> RecordBytes(const std::string& text) {
  if (text.empty()) {
    return kRecordBytesDefault;
  }
  absl::StatusOr<int64_t> bytes = ParseSize(text);
  if (!bytes.ok()) {
    return WithObject(bytes.status(), "--record");
  }
  MILLRACE_RETURN_IF_ERROR(CheckCount("--record", *bytes, 1, kRecordBytesMax));
  return bytes;
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

boost::json::array Names(const std::vector<std::string>& names) {
  boost::json::array out;
  for (const std::string& name : names) {
    out.push_back(Json(boost::json::string(name)));
  }
  return out;
}

void ShowNode(Console& console, const NodeProbe& probe,
              const NodeProbeOptions& options) {
  const kernels::KernelTable table = kernels::BuildKernelTable(options.isa);
  const std::vector<std::string> lacking = LackingVersions();
  if (console.json()) {
    console.OutJson(
        boost::json::object{{"node", NodeJson(probe.node)},
                            {"spread", NodeSpreadJson(probe.node)},
                            {"version", Version()},
                            {"host", HostJson()},
                            {"threads", options.num_threads},
                            {"kernels", ChoicesJson(table)},
                            {"lacks", Names(lacking)},
                            {"machine", RatesJson(probe.machine)},
                            {"warning", TextOrNull(probe.warning)}});
    return;
  }
  console.Out(absl::StrFormat("# %s; %s\n",
                              Counted(options.num_threads, "thread"),
                              RatesText(probe.machine)));
  if (!probe.warning.empty()) {
    console.Out(absl::StrCat("# warning: ", probe.warning, "\n"));
  }
  for (const std::string& line : KernelLines(kernels::DescribeKernels(table))) {
    console.Out(absl::StrCat("# ", line, "\n"));
  }
  console.Out(absl::StrCat(
      "# lacks: ", lacking.empty() ? "nothing" : absl::StrJoin(lacking, ", "),
      "\n", NodeYaml(probe.node)));
}

absl::Status ProbeCommand::CheckFlags() const {
  for (const auto& [way, option] : kUnused) {
    if (Given(way) && Given(option)) {
      return UsageError(option, absl::StrCat("goes without ", way),
                        "leave one of the two out");
    }
  }
  if (Given("--record") && !Given("--nvme")) {
    return UsageError("--record", "is of the disk that --nvme names",
                      "give --nvme DIR");
  }
  if (Given("--insecure") && !Given("--peer") && !Given("--listen")) {
    return UsageError("--insecure", "is of the link of --peer or --listen",
                      "give one of the two, or leave it out");
  }
  return absl::OkStatus();
}

absl::Status ProbeCommand::MeasureThis(Console& console,
                                       const NodeProbeOptions& options) {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t record_bytes, RecordBytes(record_));
  // The disk first: its folder is what people get wrong.
  std::optional<NvmeEntry> nvme;
  if (!nvme_.empty()) {
    console.Progress(absl::StrCat("measuring the disk of ", nvme_));
    MILLRACE_ASSIGN_OR_RETURN(nvme, ProbeDisk(nvme_, record_bytes, quick_));
  }
  MILLRACE_ASSIGN_OR_RETURN(NodeProbe probe, ProbeNode(options));
  probe.node.name = Name();
  probe.node.nvme = nvme;
  console.Progress("");
  ShowNode(console, probe, options);
  return absl::OkStatus();
}

absl::Status ProbeCommand::MeasureByModel(Console& console) const {
  ModelProbeOptions options;
  options.model = model_;
  options.compute.threads = threads_;
  options.compute.kernels = kernels_;
  options.quick = quick_;
  MILLRACE_ASSIGN_OR_RETURN(NodeEntry node, ProbeModel(options, console));
  node.name = Name();
  console.Progress("");
  if (console.json()) {
    console.OutJson(boost::json::object{{"node", NodeJson(node)},
                                        {"spread", NodeSpreadJson(node)},
                                        {"version", Version()},
                                        {"host", HostJson()},
                                        {"model", model_}});
  } else {
    console.Out(absl::StrCat("# by ", Printable(model_), "\n", NodeYaml(node)));
  }
  return absl::OkStatus();
}

absl::Status ProbeCommand::MeasureLink(Console& console) const {
  worker::LinkQuestion question;
  MILLRACE_ASSIGN_OR_RETURN(question.peer,
                            ParseEndpointOption("--peer", peer_));
  question.insecure = insecure_;
  question.rounds = quick_ ? 3 : 9;
  question.time = quick_ ? absl::Seconds(2) : absl::Seconds(10);
  MILLRACE_RETURN_IF_ERROR(WithObject(
      transport::RequireTrustedLink(question.peer, insecure_), "--peer"));
  const InterruptFlag interrupted;
  MILLRACE_ASSIGN_OR_RETURN(
      const control::NodeDescription peer,
      worker::NodeClient::Open(question.peer, interrupted.flag())
          ->Describe(kAskTimeout));
  LinkEntry link;
  link.from = Name();
  link.to = peer.name;
  if (link.from == link.to) {
    return UsageError("--name", absl::StrCat("both nodes are called ", link.to),
                      "give one of them another --name");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const transport::LinkRounds rounds,
      worker::MeasureLinkTo(question, interrupted.flag()));
  link.bandwidth_out = SpreadOf(rounds.bandwidth_out);
  link.bandwidth_in = SpreadOf(rounds.bandwidth_in);
  link.latency_s = SpreadOf(rounds.latency_s);
  if (console.json()) {
    console.OutJson(boost::json::object{{"link", LinkJson(link)},
                                        {"spread", LinkSpreadJson(link)},
                                        {"version", Version()},
                                        {"peer_version", peer.version}});
  } else {
    console.Out(LinkYaml(link));
  }
  return absl::OkStatus();
}

absl::Status ProbeCommand::Listen(Console& console,
                                  const NodeProbeOptions& options) const {
  const NodeIdentity identity = {
      .name = Name(), .isa = options.isa, .num_threads = options.num_threads};
  worker::NodeService::Options service;
  MILLRACE_ASSIGN_OR_RETURN(service.listen,
                            ParseEndpointOption("--listen", listen_));
  service.insecure = insecure_;
  service.describe = [identity] { return DescribeNode(identity); };
  service.measure = [identity] { return MeasureRates(identity); };
  const absl::StatusOr<std::unique_ptr<worker::NodeService>> running =
      worker::NodeService::Start(std::move(service));
  if (!running.ok()) {
    return WithObject(running.status(), "--listen");
  }
  const std::string address = transport::FormatEndpoint((*running)->endpoint());
  if (console.json()) {
    console.AnnounceJson(
        boost::json::object{{"event", "listening"}, {"control", address}});
  } else {
    console.Note(absl::StrCat("answers at ", address));
  }
  AwaitInterrupt(absl::InfiniteDuration());
  return absl::OkStatus();
}

absl::Status ProbeCommand::Run(Console& console) {
  MILLRACE_RETURN_IF_ERROR(CheckFlags());
  MILLRACE_ASSIGN_OR_RETURN(const NodeProbeOptions options,
                            ProbeOptions(console));
  if (!peer_.empty()) {
    return MeasureLink(console);
  }
  if (!model_.empty()) {
    return MeasureByModel(console);
  }
  return listen_.empty() ? MeasureThis(console, options)
                         : Listen(console, options);
}

}  // namespace

std::unique_ptr<Command> MakeProbeCommand() {
  return std::make_unique<ProbeCommand>();
}

}  // namespace millrace::cli
