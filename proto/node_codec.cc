#include "proto/node_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "proto/field_check.h"

namespace millrace::control {
namespace {

constexpr size_t kShortTextMax = 128;
constexpr size_t kLoadKeyMax = 256;
constexpr size_t kDigestMax = 128;
constexpr size_t kPathMax = 4096;
constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

template <typename T>
absl::StatusOr<T> Checked(const FieldCheck& check, T value) {
  if (!check.status().ok()) {
    return check.status();
  }
  return value;
}

double Rate(FieldCheck& check, absl::string_view field, double value) {
  const bool holds = std::isfinite(value) && value > 0;
  check.Require(field, holds);
  return holds ? value : 1;
}

template <typename Field>
std::vector<double> Rates(FieldCheck& check, absl::string_view name,
                          const Field& field) {
  check.Require(name,
                field.size() >= 1 && field.size() <= transport::kLinkRoundsMax);
  std::vector<double> values;
  if (check.status().ok()) {
    for (const double value : field) {
      values.push_back(Rate(check, name, value));
    }
  }
  return values;
}

}  // namespace

v1::NodeDescription Encode(const NodeDescription& node) {
  v1::NodeDescription out;
  out.set_name(node.name);
  out.set_version(node.version);
  out.set_wire_version(node.wire_version);
  out.set_isa(node.isa);
  out.set_threads(node.threads);
  out.set_memory_bytes(static_cast<uint64_t>(node.memory_bytes));
  out.set_memory_available_bytes(
      static_cast<uint64_t>(node.memory_available_bytes));
  out.set_resident_bytes(static_cast<uint64_t>(node.resident_bytes));
  out.set_load_key(node.load_key);
  if (node.data_address.has_value()) {
    out.set_data_address(transport::FormatEndpoint(*node.data_address));
  }
  out.set_unix_nanos(absl::ToUnixNanos(node.time));
  for (const std::string& device : node.rdma_devices) {
    if (out.rdma_devices_size() < static_cast<int>(kRdmaDevicesMax)) {
      out.add_rdma_devices(device);
    }
  }
  return out;
}

absl::StatusOr<NodeDescription> Decode(const v1::NodeDescription& node) {
  FieldCheck check("NodeDescription");
  NodeDescription out;
  out.name = check.Name("name", node.name());
  out.version = check.Text("version", node.version(), kShortTextMax);
  out.wire_version = node.wire_version();
  out.isa = check.Text("isa", node.isa(), kShortTextMax);
  out.threads =
      static_cast<int>(check.Range("threads", node.threads(), 0, 1 << 16));
  out.memory_bytes = check.Size("memory_bytes", node.memory_bytes());
  out.memory_available_bytes =
      check.Size("memory_available_bytes", node.memory_available_bytes());
  out.resident_bytes = check.Size("resident_bytes", node.resident_bytes());
  out.load_key = check.Text("load_key", node.load_key(), kLoadKeyMax);
  if (!node.data_address().empty()) {
    out.data_address = check.Address("data_address", node.data_address());
  }
  out.time = absl::FromUnixNanos(node.unix_nanos());
  check.Require("rdma_devices",
                node.rdma_devices_size() <= static_cast<int>(kRdmaDevicesMax));
  if (check.status().ok()) {
    for (const std::string& device : node.rdma_devices()) {
      out.rdma_devices.push_back(check.Name("rdma_devices", device));
    }
  }
  return Checked(check, std::move(out));
}

v1::ModelDescription Encode(const ModelDescription& model) {
  v1::ModelDescription out;
  out.set_digest(model.digest);
  out.set_files(model.files);
  out.set_bytes(model.bytes);
  return out;
}

absl::StatusOr<ModelDescription> Decode(const v1::ModelDescription& model) {
  FieldCheck check("ModelDescription");
  ModelDescription out;
  out.digest = check.Text("digest", model.digest(), kDigestMax);
  out.files = check.Range("files", model.files(), 0, kAny);
  out.bytes = check.Range("bytes", model.bytes(), 0, kAny);
  return Checked(check, std::move(out));
}

v1::NodeRates Encode(const NodeRates& rates) {
  v1::NodeRates out;
  out.set_memory_bytes(static_cast<uint64_t>(rates.memory_bytes));
  out.set_memory_bandwidth(rates.memory_bandwidth);
  for (const auto& [format, rate] : rates.compute) {
    v1::FormatRate& entry = *out.add_compute();
    entry.set_format(format);
    entry.set_rate(rate);
  }
  return out;
}

absl::StatusOr<NodeRates> Decode(const v1::NodeRates& rates) {
  FieldCheck check("NodeRates");
  NodeRates out;
  out.memory_bytes = check.Size("memory_bytes", rates.memory_bytes());
  out.memory_bandwidth =
      Rate(check, "memory_bandwidth", rates.memory_bandwidth());
  check.Require("compute",
                rates.compute_size() <= static_cast<int>(kFormatRatesMax));
  if (!check.status().ok()) {
    return check.status();
  }
  for (const v1::FormatRate& entry : rates.compute()) {
    const std::string format = check.Name("compute.format", entry.format());
    check.Require(
        "compute",
        std::none_of(out.compute.begin(), out.compute.end(),
                     [&](const auto& other) { return other.first == format; }));
    out.compute.emplace_back(format, Rate(check, "compute.rate", entry.rate()));
  }
  return Checked(check, std::move(out));
}

v1::LinkRates Encode(const transport::LinkRounds& rounds) {
  v1::LinkRates out;
  out.mutable_bandwidth_out()->Add(rounds.bandwidth_out.begin(),
                                   rounds.bandwidth_out.end());
  out.mutable_bandwidth_in()->Add(rounds.bandwidth_in.begin(),
                                  rounds.bandwidth_in.end());
  out.mutable_latency_s()->Add(rounds.latency_s.begin(),
                               rounds.latency_s.end());
  return out;
}

absl::StatusOr<transport::LinkRounds> Decode(const v1::LinkRates& rates) {
  FieldCheck check("LinkRates");
  transport::LinkRounds out;
  out.bandwidth_out = Rates(check, "bandwidth_out", rates.bandwidth_out());
  out.bandwidth_in = Rates(check, "bandwidth_in", rates.bandwidth_in());
  out.latency_s = Rates(check, "latency_s", rates.latency_s());
  check.Require("bandwidth_in",
                out.bandwidth_in.size() == out.bandwidth_out.size());
  check.Require("latency_s", out.latency_s.size() == out.bandwidth_out.size());
  return Checked(check, std::move(out));
}

v1::OpenedLink Encode(const OpenedLink& link) {
  v1::OpenedLink out;
  out.set_address(transport::FormatEndpoint(link.address));
  out.set_token(link.token.data(), link.token.size());
  return out;
}

absl::StatusOr<OpenedLink> Decode(const v1::OpenedLink& link) {
  FieldCheck check("OpenedLink");
  OpenedLink out;
  out.address = check.Address("address", link.address());
  out.token = check.Token("token", link.token());
  return Checked(check, std::move(out));
}

absl::StatusOr<std::string> Decode(const v1::FindModelRequest& request) {
  FieldCheck check("FindModelRequest");
  std::string model = check.Text("model", request.model(), kPathMax);
  check.Require("model", !request.model().empty());
  return Checked(check, std::move(model));
}

absl::StatusOr<transport::Endpoint> Decode(
    const v1::MeasureLinkRequest& request) {
  FieldCheck check("MeasureLinkRequest");
  transport::Endpoint peer = check.Address("peer", request.peer());
  return Checked(check, std::move(peer));
}

}  // namespace millrace::control
