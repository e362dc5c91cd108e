#pragma once

#include <string>
#include <vector>

#include "planner/report/axis.h"

namespace millrace::planner::report {

// A part of a bar; `style` is a class of the page's style sheet.
struct BarPart {
  const char* style = "";
  std::string name;  // "weights"
  double value = 0;  // in the unit of the axis, >= 0
  std::string text;  // the value for people
};

struct Bar {
  std::string label;  // as it is in the files; escaped here
  std::string note;   // at the end of the row
  std::vector<BarPart> parts;
};

struct BarChart {
  std::string title;  // what it shows, for those who cannot see it
  Axis axis;          // from 0
  std::vector<Bar> bars;
};

// Horizontal stacked bars as an SVG element.
std::string BarChartSvg(const BarChart& chart);

}  // namespace millrace::planner::report
