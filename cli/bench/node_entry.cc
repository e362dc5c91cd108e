#include "cli/bench/node_entry.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/bench/statistics.h"

namespace millrace::cli {
namespace {

constexpr int64_t kMegabyte = 1'000'000;

// One operation in one mode, and its formats by version.
struct Operation {
  std::string name;
  std::vector<std::pair<std::string, std::vector<std::string>>> versions;
};

std::string LineOf(const Operation& operation) {
  std::vector<std::string> parts;
  for (const auto& [version, formats] : operation.versions) {
    const bool named = formats.size() > 1 || !formats[0].empty();
    parts.push_back(absl::StrCat(
        version,
        named ? absl::StrCat(": ", absl::StrJoin(formats, ", ")) : ""));
  }
  return absl::StrFormat("%-16s  %s", operation.name,
                         absl::StrJoin(parts, "; "));
}

}  // namespace

double NodeEntry::ComputeDefault() const {
  std::vector<double> rates;
  for (const auto& [format, rate] : compute) {
    rates.push_back(rate);
  }
  return Median(rates);
}

std::string NodeYaml(const NodeEntry& node) {
  std::string out = absl::StrFormat(
      "  - name: %s\n    memory: %dMB\n    memory_bandwidth: %.4gGB/s\n"
      "    compute:\n      default: %.4g\n",
      node.name, node.memory_bytes / kMegabyte, node.memory_bandwidth * 1e-9,
      node.ComputeDefault());
  for (const auto& [format, rate] : node.compute) {
    absl::StrAppendFormat(&out, "      %s: %.4g\n", format, rate);
  }
  return out;
}

boost::json::object NodeJson(const NodeEntry& node) {
  boost::json::object compute;
  compute["default"] = node.ComputeDefault();
  for (const auto& [format, rate] : node.compute) {
    compute[format] = rate;
  }
  return {{"name", node.name},
          {"memory", node.memory_bytes},
          {"memory_bandwidth", node.memory_bandwidth},
          {"compute", std::move(compute)}};
}

std::string NodeName(absl::string_view host) {
  std::string name(host.substr(0, 64));
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' &&
        c != '_') {
      c = '-';
    }
  }
  return name.empty() || name[0] == '-' ? absl::StrCat("node", name) : name;
}

std::vector<std::string> KernelLines(
    const std::vector<kernels::KernelChoice>& choices) {
  std::vector<Operation> operations;
  for (const kernels::KernelChoice& choice : choices) {
    const std::string name = absl::StrCat(
        choice.kernel, choice.compute[0] == '\0' ? "" : " ", choice.compute);
    auto operation =
        std::find_if(operations.begin(), operations.end(),
                     [&](const Operation& each) { return each.name == name; });
    if (operation == operations.end()) {
      operation = operations.insert(operations.end(), Operation{name, {}});
    }
    auto version = std::find_if(
        operation->versions.begin(), operation->versions.end(),
        [&](const auto& each) { return each.first == choice.version; });
    if (version == operation->versions.end()) {
      operation->versions.emplace_back(choice.version,
                                       std::vector<std::string>());
      version = std::prev(operation->versions.end());
    }
    version->second.emplace_back(choice.format);
  }
  std::vector<std::string> lines;
  lines.reserve(operations.size());
  for (const Operation& operation : operations) {
    lines.push_back(LineOf(operation));
  }
  return lines;
}

}  // namespace millrace::cli
