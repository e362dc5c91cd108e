#include "coordinator/simulation/load_files.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/string.hpp"

namespace millrace::coordinator {
namespace {

// A line is a few numbers and, in some traces, ids of blocks of the prompt.
constexpr JsonLimits kLineLimits = {.bytes_max = int64_t{16} << 20,
                                    .depth_max = 8};
// A year: far beyond any load, and sums stay within the clock.
constexpr double kSecondsMax = 366.0 * 24 * 3600;

constexpr char kTraceHint[] =
    R"(a line is {"timestamp": 0, "input_length": 512, "output_length": 64})";
constexpr char kFaultHint[] =
    R"(a line is {"at": "90s", "kind": "lost", "node": "a"}, slow has a factor, )"
    R"(cut has "between": ["a", "b"])";

using TakeLine = absl::FunctionRef<absl::Status(const JsonObject& line)>;

absl::Status TakeOne(absl::string_view line, const std::string& where,
                     TakeLine take) {
  MILLRACE_ASSIGN_OR_RETURN(const Json json,
                            ParseJson(line, where, kLineLimits));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject entry,
                            JsonObject::From(json, where));
  return take(entry);
}

// `hint` stands behind every error: what a line looks like.
absl::Status ForEachLine(absl::string_view text, absl::string_view object,
                         absl::string_view hint, TakeLine take) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const absl::string_view line = text.substr(0, end);
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
    if (absl::StripAsciiWhitespace(line).empty()) {
      continue;
    }
    const std::string where = absl::StrCat(object, ": line ", number);
    if (const absl::Status taken = TakeOne(line, where, take); !taken.ok()) {
      return WithHint(taken, hint);
    }
  }
  return absl::OkStatus();
}

// Entries sorted between two questions whether to go on: some milliseconds.
constexpr size_t kSortedAtOnce = 1 << 18;

absl::Status Ask(const GoOn& go_on) {
  return go_on == nullptr || go_on()
             ? absl::OkStatus()
             : absl::CancelledError("reading was interrupted");
}

// As std::stable_sort, which cannot be interrupted: by blocks, then merged.
absl::Status SortByTime(std::vector<TraceEntry>& trace, const GoOn& go_on) {
  const auto earlier = [](const TraceEntry& a, const TraceEntry& b) {
    return a.at < b.at;
  };
  if (std::is_sorted(trace.begin(), trace.end(), earlier)) {
    return absl::OkStatus();
  }
  const auto at = [&trace](size_t index) {
    return trace.begin() +
           static_cast<std::ptrdiff_t>(std::min(index, trace.size()));
  };
  for (size_t begin = 0; begin < trace.size(); begin += kSortedAtOnce) {
    MILLRACE_RETURN_IF_ERROR(Ask(go_on));
    std::stable_sort(at(begin), at(begin + kSortedAtOnce), earlier);
  }
  for (size_t size = kSortedAtOnce; size < trace.size(); size *= 2) {
    for (size_t begin = 0; begin < trace.size(); begin += 2 * size) {
      MILLRACE_RETURN_IF_ERROR(Ask(go_on));
      std::inplace_merge(at(begin), at(begin + size), at(begin + 2 * size),
                         earlier);
    }
  }
  return absl::OkStatus();
}

absl::string_view TextOf(const Json& value) {
  const boost::json::string& text = value.get_string();
  return {text.data(), text.size()};
}

absl::StatusOr<absl::Duration> ReadAt(const JsonObject& line) {
  const Json* value = line.Find("at");
  if (value == nullptr || !value->is_string()) {
    MILLRACE_ASSIGN_OR_RETURN(const double seconds,
                              line.Number("at", 0, kSecondsMax));
    return absl::Seconds(seconds);
  }
  const absl::StatusOr<absl::Duration> at = ParseDuration(TextOf(*value));
  if (!at.ok() || *at > absl::Seconds(kSecondsMax)) {
    return line.ErrorAt("at", "must be seconds, or text as \"90s\"");
  }
  return *at;
}

absl::StatusOr<FaultKind> ReadKind(const JsonObject& line) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string kind, line.String("kind"));
  static constexpr std::pair<absl::string_view, FaultKind> kKinds[] = {
      {"lost", FaultKind::kLost}, {"stalled", FaultKind::kStalled},
      {"slow", FaultKind::kSlow}, {"cut", FaultKind::kCut},
      {"back", FaultKind::kBack},
  };
  for (const auto& [name, value] : kKinds) {
    if (kind == name) {
      return value;
    }
  }
  return line.ErrorAt("kind", "must be lost, stalled, slow, cut or back");
}

absl::StatusOr<int64_t> NodeOf(const JsonObject& line, absl::string_view key,
                               absl::string_view name,
                               const SimulatedPipeline& pipeline) {
  for (size_t i = 0; i < pipeline.nodes.size(); ++i) {
    if (pipeline.nodes[i].name == name) {
      return static_cast<int64_t>(i);
    }
  }
  return line.ErrorAt(
      key, absl::StrCat("'", Printable(name), "' is no node of the route"));
}

// Frames, or the tokens on their way back, cross between the two.
bool Crosses(const SimulatedPipeline& pipeline, int64_t a, int64_t b) {
  const size_t count = pipeline.segments.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t from = pipeline.segments[i].node;
    const int64_t to = pipeline.segments[(i + 1) % count].node;
    if (std::pair(from, to) == std::pair(a, b) ||
        std::pair(from, to) == std::pair(b, a)) {
      return true;
    }
  }
  return false;
}

absl::Status ReadLink(const JsonObject& line, const SimulatedPipeline& pipeline,
                      Fault& fault) {
  const Json* between = line.Find("between");
  const boost::json::array* ends = between->if_array();
  if (ends == nullptr || ends->size() != 2 || !(*ends)[0].is_string() ||
      !(*ends)[1].is_string()) {
    return line.ErrorAt("between", "must be the names of two nodes");
  }
  const auto name = [&](size_t end) { return TextOf((*ends)[end]); };
  MILLRACE_ASSIGN_OR_RETURN(fault.node,
                            NodeOf(line, "between", name(0), pipeline));
  MILLRACE_ASSIGN_OR_RETURN(fault.other,
                            NodeOf(line, "between", name(1), pipeline));
  if (fault.node == fault.other ||
      !Crosses(pipeline, fault.node, fault.other)) {
    return line.ErrorAt("between", "is no link that the route crosses");
  }
  return absl::OkStatus();
}

absl::StatusOr<Fault> ReadFault(const JsonObject& line,
                                const SimulatedPipeline& pipeline) {
  MILLRACE_RETURN_IF_ERROR(
      line.OnlyKeys({"at", "kind", "node", "between", "factor"}));
  Fault fault;
  MILLRACE_ASSIGN_OR_RETURN(fault.at, ReadAt(line));
  MILLRACE_ASSIGN_OR_RETURN(fault.kind, ReadKind(line));
  const bool of_link = line.Has("between");
  if (of_link == line.Has("node")) {
    return line.ErrorAt(of_link ? "between" : "node",
                        of_link ? "stands beside node: give one of them"
                                : "is missing, and so is between");
  }
  if (of_link &&
      (fault.kind == FaultKind::kLost || fault.kind == FaultKind::kStalled)) {
    return line.ErrorAt("between", "is no node: links are cut or slow");
  }
  if (!of_link && fault.kind == FaultKind::kCut) {
    return line.ErrorAt("node", "cannot be cut: nodes are lost or stalled");
  }
  if (of_link) {
    MILLRACE_RETURN_IF_ERROR(ReadLink(line, pipeline, fault));
  } else {
    MILLRACE_ASSIGN_OR_RETURN(const std::string name, line.String("node"));
    MILLRACE_ASSIGN_OR_RETURN(fault.node, NodeOf(line, "node", name, pipeline));
  }
  if (fault.kind == FaultKind::kSlow) {
    MILLRACE_ASSIGN_OR_RETURN(fault.factor, line.Number("factor", 1e-3, 1e6));
  } else if (line.Has("factor")) {
    return line.ErrorAt("factor", "is for slow only");
  }
  return fault;
}

}  // namespace

absl::StatusOr<std::vector<TraceEntry>> ParseTrace(absl::string_view text,
                                                   absl::string_view object,
                                                   const GoOn& go_on) {
  std::vector<TraceEntry> trace;
  MILLRACE_RETURN_IF_ERROR(ForEachLine(
      text, object, kTraceHint, [&](const JsonObject& line) -> absl::Status {
        MILLRACE_RETURN_IF_ERROR(Ask(go_on));
        TraceEntry entry;
        // Milliseconds since whenever, as of an epoch.
        MILLRACE_ASSIGN_OR_RETURN(const double at_ms,
                                  line.Number("timestamp", 0, 1e15));
        MILLRACE_ASSIGN_OR_RETURN(entry.input_tokens,
                                  line.Integer("input_length", 1, kTokensMax));
        MILLRACE_ASSIGN_OR_RETURN(entry.output_tokens,
                                  line.Integer("output_length", 1, kTokensMax));
        entry.at = absl::Milliseconds(at_ms);
        if (static_cast<int64_t>(trace.size()) == kTraceEntriesMax) {
          return InputError(
              object,
              absl::StrCat("has more than ", kTraceEntriesMax, " requests"));
        }
        trace.push_back(entry);
        return absl::OkStatus();
      }));
  if (trace.empty()) {
    return InputError(object, "holds no request", kTraceHint);
  }
  MILLRACE_RETURN_IF_ERROR(SortByTime(trace, go_on));
  const absl::Duration first = trace.front().at;
  for (TraceEntry& entry : trace) {
    entry.at -= first;
  }
  if (trace.back().at > absl::Seconds(kSecondsMax)) {
    return InputError(object, "spans more than a year: timestamp is in ms",
                      kTraceHint);
  }
  return trace;
}

absl::StatusOr<std::vector<Fault>> ParseFaults(
    absl::string_view text, absl::string_view object,
    const SimulatedPipeline& pipeline) {
  std::vector<Fault> faults;
  MILLRACE_RETURN_IF_ERROR(ForEachLine(
      text, object, kFaultHint, [&](const JsonObject& line) -> absl::Status {
        MILLRACE_ASSIGN_OR_RETURN(const Fault fault, ReadFault(line, pipeline));
        faults.push_back(fault);
        return absl::OkStatus();
      }));
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return faults;
}

}  // namespace millrace::coordinator
