#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "boost/json/object.hpp"
#include "kernels/kernel_versions.h"

namespace millrace::cli {

// A node of a cluster file as it was measured.
struct NodeEntry {
  std::string name;
  int64_t memory_bytes = 0;
  double memory_bandwidth = 0;  // bytes per second
  // Operations per second by weight format, > 0, in the order of the formats.
  std::vector<std::pair<std::string, double>> compute;

  // Of formats that a file does not list: the median of those measured.
  [[nodiscard]] double ComputeDefault() const;
};

// Lines that stand below `nodes:` of a cluster file, and the same as JSON.
std::string NodeYaml(const NodeEntry& node);
boost::json::object NodeJson(const NodeEntry& node);

// A host's name with every character that YAML may read in its own way
// replaced; "node" for an empty one.
std::string NodeName(absl::string_view host);

// Which version runs what, one line an operation: "matmul fast  avx512: q8_0,
// q4_0; avx512bf16: bf16".
std::vector<std::string> KernelLines(
    const std::vector<kernels::KernelChoice>& choices);

}  // namespace millrace::cli
