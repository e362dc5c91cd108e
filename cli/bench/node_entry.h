#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "boost/json/object.hpp"
#include "cli/bench/statistics.h"
#include "kernels/kernel_versions.h"

namespace millrace::cli {

// What the matrix kernels do with weights of one format, operations per second.
struct FormatRate {
  std::string format;  // or `default`, where nothing else is measured
  // Beyond the time that reading the weights takes, at the few rows of decoding
  // together: what a plan divides a pass's operations by.
  Spread decode;
  // Of a prompt's many rows, reading included.
  Spread prompt;
};

struct NvmeEntry {
  Spread bandwidth;  // bytes per second
  int64_t space_bytes = 0;
};

// A node of a cluster file as it was measured.
struct NodeEntry {
  std::string name;
  int64_t memory_bytes = 0;
  Spread memory_bandwidth;          // bytes per second
  std::vector<FormatRate> compute;  // in the order of the formats
  std::optional<NvmeEntry> nvme;

  // Of formats that a file does not list: the median of those measured.
  [[nodiscard]] double ComputeDefault() const;
};

// The link between two nodes as it was measured from the first one.
struct LinkEntry {
  std::string from, to;
  Spread bandwidth_out, bandwidth_in;  // bytes per second
  Spread latency_s;                    // one way: half of a small round trip

  // Of both directions, as a cluster file has it: the slower one.
  [[nodiscard]] double Bandwidth() const;
};

// Lines that stand below `nodes:` and `links:` of a cluster file, each number's
// spread in a comment; and the same as JSON, with nothing but what a cluster
// file has.
std::string NodeYaml(const NodeEntry& node);
boost::json::object NodeJson(const NodeEntry& node);
std::string LinkYaml(const LinkEntry& link);
boost::json::object LinkJson(const LinkEntry& link);

// {median, low, high, rounds} of every number of an entry.
boost::json::object NodeSpreadJson(const NodeEntry& node);
boost::json::object LinkSpreadJson(const LinkEntry& link);

// A host's name with every character that YAML may read in its own way
// replaced; "node" for an empty one.
std::string NodeName(absl::string_view host);

// Which version runs what, one line an operation: "matmul fast  avx512: q8_0,
// q4_0; avx512bf16: bf16".
std::vector<std::string> KernelLines(
    const std::vector<kernels::KernelChoice>& choices);

}  // namespace millrace::cli
