#include "cli/bench/node_entry.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "cli/bench/statistics.h"

namespace millrace::cli {
namespace {

constexpr int64_t kMegabyte = 1'000'000;
// A rate measured for no format in particular; it is the default as it is.
constexpr char kDefault[] = "default";

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

// A YAML line "    KEY: VALUE" with the spread behind it.
std::string Line(absl::string_view key, const std::string& value,
                 const Spread& spread) {
  return absl::StrFormat("%s: %s  # +- %.0f %% over %s\n", key, value,
                         100 * spread.Share(), Counted(spread.rounds, "round"));
}

std::string RateText(double bytes_per_s) {
  return absl::StrFormat("%.4gGB/s", bytes_per_s * 1e-9);
}

boost::json::object SpreadJson(const Spread& spread) {
  return {{"median", spread.median},
          {"low", spread.low},
          {"high", spread.high},
          {"rounds", spread.rounds}};
}

}  // namespace

double NodeEntry::ComputeDefault() const {
  std::vector<double> rates;
  for (const FormatRate& rate : compute) {
    rates.push_back(rate.decode.median);
  }
  return Median(rates);
}

double LinkEntry::Bandwidth() const {
  return std::min(bandwidth_out.median, bandwidth_in.median);
}

std::string NodeYaml(const NodeEntry& node) {
  std::string out = absl::StrFormat("  - name: %s\n    memory: %dMB\n",
                                    node.name, node.memory_bytes / kMegabyte);
  absl::StrAppend(
      &out, Line("    memory_bandwidth", RateText(node.memory_bandwidth.median),
                 node.memory_bandwidth));
  if (!node.compute.empty()) {
    absl::StrAppend(&out, "    compute:\n");
    if (node.compute[0].format != kDefault) {
      absl::StrAppendFormat(&out, "      default: %.4g\n",
                            node.ComputeDefault());
    }
  }
  for (const FormatRate& rate : node.compute) {
    absl::StrAppend(
        &out, Line(absl::StrCat("      ", rate.format),
                   absl::StrFormat("%.4g", rate.decode.median), rate.decode));
  }
  if (node.nvme.has_value()) {
    absl::StrAppend(
        &out, "    nvme:\n",
        Line("      bandwidth", RateText(node.nvme->bandwidth.median),
             node.nvme->bandwidth),
        absl::StrFormat("      space: %dMB\n",
                        node.nvme->space_bytes / kMegabyte));
  }
  return out;
}

boost::json::object NodeJson(const NodeEntry& node) {
  boost::json::object out = {
      {"name", node.name},
      {"memory", node.memory_bytes},
      {"memory_bandwidth", node.memory_bandwidth.median}};
  if (!node.compute.empty()) {
    boost::json::object compute;
    compute["default"] = node.ComputeDefault();
    for (const FormatRate& rate : node.compute) {
      compute[rate.format] = rate.decode.median;
    }
    out["compute"] = std::move(compute);
  }
  if (node.nvme.has_value()) {
    out["nvme"] = {{"bandwidth", node.nvme->bandwidth.median},
                   {"space", node.nvme->space_bytes}};
  }
  return out;
}

std::string LinkYaml(const LinkEntry& link) {
  return absl::StrCat(
      absl::StrFormat("  - between: [%s, %s]\n", link.from, link.to),
      Line("    bandwidth", RateText(link.Bandwidth()),
           link.bandwidth_out.median < link.bandwidth_in.median
               ? link.bandwidth_out
               : link.bandwidth_in),
      Line("    latency",
           absl::StrFormat("%.4gus", link.latency_s.median * 1e6),
           link.latency_s));
}

boost::json::object LinkJson(const LinkEntry& link) {
  return {{"between", {link.from, link.to}},
          {"bandwidth", link.Bandwidth()},
          {"latency", link.latency_s.median}};
}

boost::json::object NodeSpreadJson(const NodeEntry& node) {
  boost::json::object out;
  out["memory_bandwidth"] = SpreadJson(node.memory_bandwidth);
  boost::json::object compute;
  boost::json::object prompt;
  for (const FormatRate& rate : node.compute) {
    compute[rate.format] = SpreadJson(rate.decode);
    if (rate.prompt.rounds > 0) {
      prompt[rate.format] = SpreadJson(rate.prompt);
    }
  }
  out["compute"] = std::move(compute);
  out["prompt_compute"] = std::move(prompt);
  if (node.nvme.has_value()) {
    out["nvme"] = {{"bandwidth", SpreadJson(node.nvme->bandwidth)}};
  }
  return out;
}

boost::json::object LinkSpreadJson(const LinkEntry& link) {
  return {{"bandwidth_out", SpreadJson(link.bandwidth_out)},
          {"bandwidth_in", SpreadJson(link.bandwidth_in)},
          {"latency", SpreadJson(link.latency_s)}};
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
