#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "transport/endpoint.h"
#include "transport/link_meter.h"
#include "transport/tcp/tcp_handshake.h"

namespace millrace::control {

// What a node's service answers, as plain values; meanings and units stand in
// millrace/control/v1/node.proto. Decoded ones are in range.

struct NodeDescription {
  std::string name;
  std::string version;
  uint32_t wire_version = 0;
  std::string isa;
  int threads = 0;
  int64_t memory_bytes = 0;  // 0: not limited
  int64_t memory_available_bytes = 0;
  int64_t resident_bytes = 0;
  std::string load_key;  // empty: holds no stage
  std::optional<transport::Endpoint> data_address;
  absl::Time time;
  std::vector<std::string> rdma_devices;
};
inline constexpr size_t kRdmaDevicesMax = 64;

struct ModelDescription {
  std::string digest;
  int64_t files = 0;
  int64_t bytes = 0;
};

struct NodeRates {
  int64_t memory_bytes = 0;
  double memory_bandwidth = 0;
  std::vector<std::pair<std::string, double>> compute;  // by format
};
inline constexpr size_t kFormatRatesMax = 64;

struct OpenedLink {
  transport::Endpoint address;
  transport::LinkToken token = {};
};

}  // namespace millrace::control
