#include "planner/report/page_inputs.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/report/neighbor_groups.h"
#include "planner/report/page_text.h"

namespace millrace::planner::report {
namespace {

// The mark of a field of a node: its own where it was measured.
std::string NodeMark(const ReportInput& input, const Node& node,
                     const char* field) {
  const std::string own =
      MarkOf(*input.provenance,
             absl::StrCat("inputs.cluster.nodes.", node.name, ".", field));
  return own.empty() ? MarkOf(*input.provenance, "inputs.cluster") : own;
}

std::string Marked(const std::string& text, const std::string& mark) {
  return absl::StrCat(text, text == "unknown" ? "" : mark);
}

std::string OperationsData(const Node& node) {
  const std::optional<double> rate = node.ComputeRate(kComputeDefault);
  return rate.has_value() ? absl::StrCat("<data value=\"", *rate, "\">",
                                         RateText(*rate / 1e12), " T</data>")
                          : "unknown";
}

std::string BandwidthData(const std::optional<double>& bandwidth) {
  return bandwidth.has_value()
             ? absl::StrCat("<data value=\"", *bandwidth, "\">",
                            RateText(*bandwidth / 1e9), " GB/s</data>")
             : "unknown";
}

bool Alike(const ReportInput& input, const Node& a, const Node& b) {
  return a.memory_bytes == b.memory_bytes &&
         a.memory_bandwidth == b.memory_bandwidth && a.compute == b.compute &&
         NodeMark(input, a, "memory_bandwidth") ==
             NodeMark(input, b, "memory_bandwidth") &&
         NodeMark(input, a, "compute") == NodeMark(input, b, "compute");
}

}  // namespace

std::string InputsTable(const ReportInput& input) {
  const std::vector<Node>& nodes = input.cluster->nodes;
  const std::vector<NeighborGroup> groups = GroupNeighbors(
      nodes.size(),
      [&](size_t a, size_t b) { return Alike(input, nodes[a], nodes[b]); });
  const Link& link = input.cluster->link_default;
  std::string out = absl::StrCat(
      "<h2>Inputs</h2>\n<p>Links without an entry of their own: ",
      BandwidthData(link.bandwidth), ", latency ", SecondsData(link.latency_s),
      ". Reserve of every node: ", SizeData(input.cluster->reserve_bytes),
      ".</p>\n");
  if (!groups.empty() && !groups.front().alike) {
    absl::StrAppend(&out,
                    "<p>A row stands for neighbors and shows the first "
                    "of them.</p>\n");
  }
  absl::StrAppend(
      &out,
      "<div class=\"scroll\"><table><caption>Nodes of the cluster</caption>\n"
      "<thead><tr><th class=\"left\" scope=\"col\">node</th>"
      "<th scope=\"col\">memory</th><th scope=\"col\">memory bandwidth</th>"
      "<th scope=\"col\">operations per second</th></tr></thead>\n<tbody>\n");
  for (const NeighborGroup& group : groups) {
    const Node& node = nodes[group.begin];
    const std::string others =
        group.size() == 1
            ? ""
            : absl::StrCat(" … ", Shortened(nodes[group.end - 1].name, 60),
                           " (", group.size(),
                           group.alike ? " alike)" : " nodes)");
    absl::StrAppend(
        &out, "<tr><th class=\"left\" scope=\"row\">",
        Escaped(Shortened(node.name, 60)), Escaped(others), "</th><td>",
        Marked(SizeData(node.memory_bytes), NodeMark(input, node, "memory")),
        "</td><td>",
        Marked(BandwidthData(node.memory_bandwidth),
               NodeMark(input, node, "memory_bandwidth")),
        "</td><td>",
        Marked(OperationsData(node), NodeMark(input, node, "compute")),
        "</td></tr>\n");
  }
  absl::StrAppend(&out, "</tbody></table></div>\n");
  return out;
}

}  // namespace millrace::planner::report
