#include "cli/node_answers.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cli/bench/available_memory.h"
#include "cli/bench/bench_options.h"
#include "cli/bench/node_probe.h"
#include "cli/version.h"
#include "model/checkpoint/checkpoint.h"
#include "proto/control_messages.h"
#include "stage-worker/server/rdma_devices.h"
#include "stage-worker/server/resident_bytes.h"
#include "stage-worker/server/stage_factory.h"

namespace millrace::cli {

control::NodeDescription DescribeNode(const NodeIdentity& identity) {
  control::NodeDescription node;
  node.name = identity.name;
  node.version = Version();
  node.wire_version = control::kWireVersion;
  node.isa = kernels::IsaName(identity.isa);
  node.threads = identity.num_threads;
  node.memory_bytes = identity.memory_bytes;
  node.resident_bytes = worker::ResidentBytes();
  node.memory_available_bytes = AvailableMemory();
  if (identity.memory_bytes > 0) {
    node.memory_available_bytes = std::min(
        node.memory_available_bytes,
        std::max<int64_t>(0, identity.memory_bytes - node.resident_bytes));
  }
  node.rdma_devices = worker::RdmaDevices();
  node.time = SystemClock().Now();
  return node;
}

absl::StatusOr<control::ModelDescription> DescribeModel(
    const std::string& models_dir, const std::string& model) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string path,
                            worker::LocalModelPath(models_dir, model));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<model::Checkpoint> checkpoint,
                            model::Checkpoint::Open(path));
  control::ModelDescription description;
  description.digest = checkpoint->spec().digest;
  for (const std::string& file : checkpoint->files()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> opened,
                              RandomAccessFile::Open(file));
    description.bytes += opened->size();
    ++description.files;
  }
  return description;
}

absl::StatusOr<control::NodeRates> MeasureRates(const NodeIdentity& identity) {
  NodeProbeOptions options;
  options.isa = identity.isa;
  MILLRACE_ASSIGN_OR_RETURN(options.formats, ParseFormats(""));
  // A stage may have more threads than cores; a rate may not.
  MILLRACE_ASSIGN_OR_RETURN(const int cores, MeasuringThreads(std::nullopt));
  options.num_threads = std::min(identity.num_threads, cores);
  options.quick = true;
  MILLRACE_ASSIGN_OR_RETURN(const NodeProbe probe, ProbeNode(options));
  if (!probe.warning.empty()) {
    MILLRACE_LOG(Warning) << identity.name << ": " << probe.warning;
  }
  control::NodeRates rates;
  rates.memory_bytes = probe.node.memory_bytes;
  rates.memory_bandwidth = probe.node.memory_bandwidth.median;
  rates.compute.emplace_back("default", probe.node.ComputeDefault());
  for (const FormatRate& rate : probe.node.compute) {
    rates.compute.emplace_back(rate.format, rate.decode.median);
  }
  return rates;
}

}  // namespace millrace::cli
