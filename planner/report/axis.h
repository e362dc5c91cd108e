#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::planner::report {

struct Tick {
  double value = 0;
  std::string label;
};

// One axis of a picture. `high` > `low`, and `low` > 0 where it is logarithmic.
struct Axis {
  std::string label;  // with its unit
  bool is_log = false;
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks;  // at round values, ascending, within the axis

  // Where a value stands: 0 at `low`, 1 at `high`; outside: at the nearer end.
  [[nodiscard]] double Position(double value) const;
};

// From 0 to at least `high`, with a handful of ticks at 1, 2 or 5 times a power
// of ten; the unit that `high` asks for stands in the label.
Axis SizeAxis(const std::string& label, double bytes_high);
Axis SecondsAxis(const std::string& label, double seconds_high);
Axis PlainAxis(const std::string& label, double high);
// Logarithmic, with ticks at powers of two ("4 Ki") or ten ("10 k"); ends at
// powers too. 1 <= low <= high.
Axis BinaryAxis(const std::string& label, double low, double high);
Axis DecimalAxis(const std::string& label, double low, double high);

}  // namespace millrace::planner::report
