#include "planner/report/axis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace millrace::planner::report {
namespace {

constexpr double kStepsWanted = 5;

struct Unit {
  const char* name;
  double size;
};

// The least 1, 2 or 5 times a power of ten that is not below `value`.
double RoundStep(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (value <= factor * power * (1 + 1e-9)) {
      return factor * power;
    }
  }
  return 10 * power;
}

// `units` descend; the first that `high` reaches, else the last.
template <size_t N>
Axis LinearAxis(const std::string& label, double high,
                const std::array<Unit, N>& units) {
  Axis axis;
  high = std::isfinite(high) && high > 0 ? high : 1;
  const Unit* unit = &units.back();
  for (const Unit& candidate : units) {
    if (high >= candidate.size) {
      unit = &candidate;
      break;
    }
  }
  axis.label =
      *unit->name == '\0' ? label : absl::StrCat(label, ", ", unit->name);
  const double step = RoundStep(high / unit->size / kStepsWanted);
  const double steps = std::ceil(high / unit->size / step - 1e-9);
  axis.high = steps * step * unit->size;
  for (double i = 0; i <= steps; ++i) {
    axis.ticks.push_back(
        {i * step * unit->size, absl::StrFormat("%g", i * step)});
  }
  return axis;
}

// Ticks at base^k, at most about ten.
template <typename Label>
Axis PowerAxis(double base, double low, double high, Label&& label) {
  Axis axis;
  axis.is_log = true;
  const auto first =
      static_cast<int>(std::floor(std::log(low) / std::log(base) + 1e-9));
  const auto last = std::max(
      first + 1,
      static_cast<int>(std::ceil(std::log(high) / std::log(base) - 1e-9)));
  axis.low = std::pow(base, first);
  axis.high = std::pow(base, last);
  const int step = (last - first + 9) / 10;
  for (int k = first; k <= last; k += step) {
    axis.ticks.push_back({std::pow(base, k), label(std::pow(base, k))});
  }
  return axis;
}

}  // namespace

double Axis::Position(double value) const {
  const double at =
      is_log ? std::log(std::max(value, low) / low) / std::log(high / low)
             : (value - low) / (high - low);
  return std::clamp(at, 0.0, 1.0);
}

Axis SizeAxis(const std::string& label, double bytes_high) {
  static constexpr std::array<Unit, 6> kUnits = {{{"PB", 1e15},
                                                  {"TB", 1e12},
                                                  {"GB", 1e9},
                                                  {"MB", 1e6},
                                                  {"kB", 1e3},
                                                  {"B", 1}}};
  return LinearAxis(label, bytes_high, kUnits);
}

Axis SecondsAxis(const std::string& label, double seconds_high) {
  static constexpr std::array<Unit, 3> kUnits = {
      {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}}};
  return LinearAxis(label, seconds_high, kUnits);
}

Axis PlainAxis(const std::string& label, double high) {
  static constexpr std::array<Unit, 1> kUnits = {{{"", 1}}};
  return LinearAxis(label, high, kUnits);
}

Axis BinaryAxis(const std::string& label, double low, double high) {
  Axis axis = PowerAxis(2, low, high, [](double value) {
    return value >= 1024.0 * 1024 * 1024
               ? absl::StrFormat("%g Gi", value / 1024 / 1024 / 1024)
           : value >= 1024.0 * 1024
               ? absl::StrFormat("%g Mi", value / 1024 / 1024)
           : value >= 1024 ? absl::StrFormat("%g Ki", value / 1024)
                           : absl::StrFormat("%g", value);
  });
  axis.label = label;
  return axis;
}

Axis DecimalAxis(const std::string& label, double low, double high) {
  Axis axis = PowerAxis(10, low, high, [](double value) {
    return value >= 1e9   ? absl::StrFormat("%g G", value / 1e9)
           : value >= 1e6 ? absl::StrFormat("%g M", value / 1e6)
           : value >= 1e3 ? absl::StrFormat("%g k", value / 1e3)
                          : absl::StrFormat("%g", value);
  });
  axis.label = label;
  return axis;
}

}  // namespace millrace::planner::report
