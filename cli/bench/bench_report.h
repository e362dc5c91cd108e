#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "boost/json/object.hpp"
#include "cli/bench/machine_meter.h"

namespace millrace::cli {

// How benchmarks show the machine, in JSON and for people.

// {memory_bandwidth, fma, paired_dot, byte_dot}: bytes and operations per
// second; null where there is no such loop.
boost::json::object RatesJson(const MachineRates& rates);
// "memory 23.1 GB/s, fma 210 GOPS, byte_dot 820 GOPS": loops that there are.
std::string RatesText(const MachineRates& rates);
// Number by number.
MachineRates MedianRates(const std::vector<MachineRates>& rates);

Json NumberOrNull(const std::optional<double>& value);
// Null for an empty text.
Json TextOrNull(const std::string& text);
// "-" without one.
std::string PercentText(const std::optional<double>& share);
// `value` in billions, three significant digits or a whole number.
std::string BillionsText(const std::optional<double>& value);

// What of this machine decides speed: {name, processor, cores}.
boost::json::object HostJson();

}  // namespace millrace::cli
