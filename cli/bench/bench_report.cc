#include "cli/bench/bench_report.h"

#include <fstream>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"
#include "cli/bench/statistics.h"
#include "cli/host_name.h"

namespace millrace::cli {
namespace {

// As the kernel names it; empty where it does not.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (absl::StartsWith(line, "model name") && colon != std::string::npos) {
      return Printable(absl::StripAsciiWhitespace(
          absl::string_view(line).substr(colon + 1)));
    }
  }
  return "";
}

}  // namespace

boost::json::object RatesJson(const MachineRates& rates) {
  boost::json::object out;
  out["memory_bandwidth"] = rates.memory_bandwidth;
  for (int i = 0; i < kernels::kNumPeaks; ++i) {
    out[kernels::PeakName(static_cast<kernels::Peak>(i))] =
        NumberOrNull(rates.peaks[static_cast<size_t>(i)]);
  }
  return out;
}

std::string RatesText(const MachineRates& rates) {
  std::string out =
      absl::StrCat("memory ", BillionsText(rates.memory_bandwidth), " GB/s");
  for (int i = 0; i < kernels::kNumPeaks; ++i) {
    const std::optional<double>& peak = rates.peaks[static_cast<size_t>(i)];
    if (peak.has_value()) {
      absl::StrAppend(&out, ", ",
                      kernels::PeakName(static_cast<kernels::Peak>(i)), " ",
                      BillionsText(peak), " GOPS");
    }
  }
  return out;
}

MachineRates MedianRates(const std::vector<MachineRates>& rates) {
  MachineRates out;
  std::vector<double> bandwidths;
  for (const MachineRates& each : rates) {
    bandwidths.push_back(each.memory_bandwidth);
  }
  out.memory_bandwidth = Median(bandwidths);
  for (size_t i = 0; i < out.peaks.size(); ++i) {
    std::vector<std::optional<double>> peaks;
    for (const MachineRates& each : rates) {
      peaks.push_back(each.peaks[i]);
    }
    out.peaks[i] = Median(peaks);
  }
  return out;
}

Json NumberOrNull(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json TextOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(boost::json::string(text));
}

std::string PercentText(const std::optional<double>& share) {
  if (!share.has_value()) {
    return "-";
  }
  return *share < 0.01 ? absl::StrFormat("%.2f %%", *share * 100)
                       : absl::StrFormat("%.0f %%", *share * 100);
}

std::string BillionsText(const std::optional<double>& value) {
  if (!value.has_value()) {
    return "-";
  }
  const double billions = *value * 1e-9;
  return absl::StrFormat(billions < 10    ? "%.2f"
                         : billions < 100 ? "%.1f"
                                          : "%.0f",
                         billions);
}

boost::json::object HostJson() {
  return {{"name", HostName("node")},
          {"processor", ProcessorName()},
          {"cores", std::thread::hardware_concurrency()}};
}

}  // namespace millrace::cli
