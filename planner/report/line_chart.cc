#include "planner/report/line_chart.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/report/page_text.h"

namespace millrace::planner::report {
namespace {

// In units of the view box, which a page shows about one to one.
constexpr double kWidth = 820;
constexpr double kHeight = 320;
constexpr double kLeft = 70;
constexpr double kRight = kWidth - 24;
constexpr double kTop = 28;
constexpr double kBottom = kHeight - 46;

double XOf(const LineChart& chart, double value) {
  return kLeft + (kRight - kLeft) * chart.x.Position(value);
}

double YOf(const LineChart& chart, double value) {
  return kBottom - (kBottom - kTop) * chart.y.Position(value);
}

void AppendAxes(const LineChart& chart, std::string& out) {
  for (const Tick& tick : chart.x.ticks) {
    const double x = XOf(chart, tick.value);
    absl::StrAppendFormat(
        &out,
        "<line class=\"grid\" x1=\"%.2f\" y1=\"%g\" x2=\"%.2f\" y2=\"%g\"/>"
        "<text class=\"mid tick\" x=\"%.2f\" y=\"%g\">%s</text>\n",
        x, kTop, x, kBottom, x, kBottom + 17, Escaped(tick.label));
  }
  for (const Tick& tick : chart.y.ticks) {
    const double y = YOf(chart, tick.value);
    absl::StrAppendFormat(
        &out,
        "<line class=\"grid\" x1=\"%g\" y1=\"%.2f\" x2=\"%g\" y2=\"%.2f\"/>"
        "<text class=\"end tick\" x=\"%g\" y=\"%.2f\">%s</text>\n",
        kLeft, y, kRight, y, kLeft - 8, y + 4, Escaped(tick.label));
  }
  absl::StrAppendFormat(&out,
                        "<path class=\"axis\" d=\"M%g %gV%gH%g\"/>"
                        "<text class=\"mid name\" x=\"%g\" y=\"%g\">%s</text>\n"
                        "<text class=\"name\" x=\"4\" y=\"14\">%s</text>\n",
                        kLeft, kTop, kBottom, kRight, (kLeft + kRight) / 2,
                        kHeight - 8, Escaped(chart.x.label),
                        Escaped(chart.y.label));
}

void AppendCurve(const LineChart& chart, const Curve& curve, std::string& out) {
  if (curve.points.empty()) {
    return;
  }
  absl::StrAppend(&out, "<polyline class=\"", curve.style, "\" points=\"");
  for (const auto& [x, y] : curve.points) {
    absl::StrAppendFormat(&out, "%.2f,%.2f ", XOf(chart, x), YOf(chart, y));
  }
  absl::StrAppend(&out, "\"><title>", Escaped(curve.name),
                  "</title></polyline>\n");
}

// Text beside a point: on its right, where a falling curve leaves room, unless
// the picture ends there.
void AppendLabel(double x, double y, const std::string& text,
                 std::string& out) {
  const bool is_right = x > kLeft + (kRight - kLeft) * 0.8;
  absl::StrAppendFormat(&out,
                        "<text class=\"%s\" x=\"%.2f\" y=\"%.2f\">%s</text>\n",
                        is_right ? "end halo" : "halo",
                        is_right ? x - 8 : x + 8, y, Escaped(text));
}

}  // namespace

std::string LineChartSvg(const LineChart& chart) {
  std::string out = absl::StrFormat(
      "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", kWidth,
      kHeight, Escaped(chart.title));
  AppendAxes(chart, out);
  if (chart.limit.has_value()) {
    const double x = XOf(chart, *chart.limit);
    absl::StrAppendFormat(
        &out,
        "<line class=\"limit\" x1=\"%.2f\" y1=\"%g\" x2=\"%.2f\" y2=\"%g\"/>\n",
        x, kTop, x, kBottom);
    AppendLabel(x, kBottom - 8, chart.limit_label, out);
  }
  for (const Curve& curve : chart.curves) {
    AppendCurve(chart, curve, out);
  }
  for (const Spot& spot : chart.spots) {
    const double x = XOf(chart, spot.x);
    const double y = YOf(chart, spot.y);
    absl::StrAppendFormat(
        &out, "<circle class=\"spot\" cx=\"%.2f\" cy=\"%.2f\" r=\"4\"/>\n", x,
        y);
    AppendLabel(x, y - 9, spot.label, out);
  }
  absl::StrAppend(&out, "</svg>\n");
  return out;
}

}  // namespace millrace::planner::report
