#include "planner/report/bar_chart.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/report/page_text.h"

namespace millrace::planner::report {
namespace {

// In units of the view box, which a page shows about one to one.
constexpr double kWidth = 820;
constexpr double kLabelWidth = 170;
constexpr double kNoteWidth = 170;
constexpr double kBarsWidth = kWidth - kLabelWidth - kNoteWidth;
constexpr double kBottom = 40;
constexpr size_t kLabelCharacters = 24;
constexpr size_t kManyBars = 40;

struct Rows {
  double height;
  double bar;
};

void AppendBar(const Bar& bar, const Axis& axis, const Rows& rows, double y,
               std::string& out) {
  const double middle = y + rows.height / 2;
  absl::StrAppendFormat(
      &out, "<g><title>%s</title>\n<text class=\"end\" x=\"%g\" y=\"%g\">%s",
      Escaped(bar.label), kLabelWidth - 8, middle + 4,
      Escaped(Shortened(bar.label, kLabelCharacters)));
  absl::StrAppend(&out, "</text>\n");
  double from = 0;
  for (const BarPart& part : bar.parts) {
    const double left = kLabelWidth + kBarsWidth * axis.Position(from);
    from += part.value;
    const double right = kLabelWidth + kBarsWidth * axis.Position(from);
    if (right - left < 0.05) {
      continue;
    }
    absl::StrAppendFormat(&out,
                          "<rect class=\"%s\" x=\"%.2f\" y=\"%g\" "
                          "width=\"%.2f\" height=\"%g\"><title>%s: %s: "
                          "%s</title></rect>\n",
                          part.style, left, middle - rows.bar / 2, right - left,
                          rows.bar, Escaped(bar.label), Escaped(part.name),
                          Escaped(part.text));
  }
  absl::StrAppendFormat(&out, "<text x=\"%g\" y=\"%g\">%s</text></g>\n",
                        kLabelWidth + kBarsWidth + 10, middle + 4,
                        Escaped(bar.note));
}

}  // namespace

std::string BarChartSvg(const BarChart& chart) {
  const Rows rows = chart.bars.size() > kManyBars ? Rows{17, 11} : Rows{24, 15};
  const double bottom =
      rows.height * static_cast<double>(chart.bars.size()) + 4;
  std::string out = absl::StrFormat(
      "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", kWidth,
      bottom + kBottom, Escaped(chart.title));
  for (const Tick& tick : chart.axis.ticks) {
    const double x = kLabelWidth + kBarsWidth * chart.axis.Position(tick.value);
    absl::StrAppendFormat(
        &out,
        "<line class=\"grid\" x1=\"%.2f\" y1=\"0\" x2=\"%.2f\" y2=\"%g\"/>"
        "<text class=\"mid tick\" x=\"%.2f\" y=\"%g\">%s</text>\n",
        x, x, bottom, x, bottom + 15, Escaped(tick.label));
  }
  for (size_t i = 0; i < chart.bars.size(); ++i) {
    AppendBar(chart.bars[i], chart.axis, rows,
              2 + rows.height * static_cast<double>(i), out);
  }
  absl::StrAppendFormat(
      &out,
      "<line class=\"axis\" x1=\"%g\" y1=\"0\" x2=\"%g\" y2=\"%g\"/>"
      "<text class=\"mid name\" x=\"%g\" y=\"%g\">%s</text>\n</svg>\n",
      kLabelWidth, kLabelWidth, bottom, kLabelWidth + kBarsWidth / 2,
      bottom + 33, Escaped(chart.axis.label));
  return out;
}

}  // namespace millrace::planner::report
