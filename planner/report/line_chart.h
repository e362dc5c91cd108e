#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/report/axis.h"

namespace millrace::planner::report {

struct Curve {
  const char* style = "";  // a class of the page's style sheet
  std::string name;        // as it is in the files; escaped here
  std::vector<std::pair<double, double>> points;  // x ascends
};

// A point of the plan itself.
struct Spot {
  double x = 0;
  double y = 0;
  std::string label;
};

struct LineChart {
  std::string title;  // what it shows, for those who cannot see it
  Axis x;
  Axis y;
  std::vector<Curve> curves;  // the last on top
  std::vector<Spot> spots;
  // A vertical line.
  std::optional<double> limit;
  std::string limit_label;
};

// Curves over one pair of axes as an SVG element.
std::string LineChartSvg(const LineChart& chart);

}  // namespace millrace::planner::report
