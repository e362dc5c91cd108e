#include "cli/live_load.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "cli/http_call.h"
#include "cli/interrupt.h"
#include "cli/interrupt_flag.h"

namespace millrace::cli {
namespace {

constexpr char kPrefix[] = "millrace_coordinator_";
constexpr absl::Duration kPeriod = absl::Seconds(1);
constexpr absl::Duration kTimeout = absl::Seconds(5);
// Fewer finished sequences say little about lengths.
constexpr double kSequencesLeast = 16;

// What the coordinator has counted by one moment.
struct Sample {
  double finished = 0;
  double prompt_tokens = 0;
  double generated_tokens = 0;
  double running = 0;
  double waiting = 0;
};

std::optional<double> Metric(const std::vector<absl::string_view>& lines,
                             absl::string_view name) {
  for (absl::string_view line : lines) {
    double value = 0;
    if (absl::ConsumePrefix(&line, kPrefix) &&
        absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, " ") &&
        absl::SimpleAtod(line, &value) && std::isfinite(value) && value >= 0) {
      return value;
    }
  }
  return std::nullopt;
}

absl::StatusOr<Sample> ReadSample(const std::string& url,
                                  const transport::Endpoint& server,
                                  const std::atomic<bool>& cancelled) {
  HttpRequest request;
  request.server = server;
  request.path = "/metrics";
  request.timeout = kTimeout;
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            HttpCall(request, cancelled));
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  Sample sample;
  const std::pair<const char*, double*> metrics[] = {
      {"sequences_finished_total", &sample.finished},
      {"prompt_tokens_total", &sample.prompt_tokens},
      {"generated_tokens_total", &sample.generated_tokens},
      {"sequences_running", &sample.running},
      {"sequences_waiting", &sample.waiting}};
  for (const auto& [name, value] : metrics) {
    const std::optional<double> found = Metric(lines, name);
    if (!found.has_value()) {
      return MakeError(absl::StatusCode::kUnavailable, url,
                       absl::StrCat("tells no ", kPrefix, name),
                       "give the address of a millrace coordinator");
    }
    *value = *found;
  }
  return sample;
}

int64_t WholeAtLeastOne(double value) {
  return std::max<int64_t>(1, std::llround(value));
}

}  // namespace

boost::json::object LiveLoad::ToJson() const {
  return {{"url", url},
          {"prompt_len", prompt_len},
          {"output_len", output_len},
          {"concurrency", concurrency},
          {"sequences", sequences},
          {"seconds", seconds},
          {"lengths_since_start", lengths_since_start}};
}

std::string LiveLoad::Text() const {
  return absl::StrFormat(
      "measured at %s: prompts of %d tokens, answers of %d, %d at once, by %d "
      "finished sequences %s\n",
      url, prompt_len, output_len, concurrency, sequences,
      lengths_since_start ? "since its start (too few finished meanwhile)"
                          : absl::StrFormat("in %.0f s", seconds));
}

absl::StatusOr<LiveLoad> MeasureLoad(const std::string& url,
                                     absl::Duration window, Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(const transport::Endpoint server,
                            ParseHttpUrl("--load", url));
  const InterruptFlag interrupted;
  const SystemClock clock;
  const absl::Duration start = clock.Monotonic();
  MILLRACE_ASSIGN_OR_RETURN(const Sample first,
                            ReadSample(url, server, interrupted.flag()));
  Sample last = first;
  double at_once = first.running + first.waiting;
  int samples = 1;
  while (clock.Monotonic() - start < window) {
    console.Progress(
        absl::StrFormat("watching the load: %.0f of %.0f s, %.0f running",
                        absl::ToDoubleSeconds(clock.Monotonic() - start),
                        absl::ToDoubleSeconds(window), last.running));
    if (AwaitInterrupt(kPeriod)) {
      return absl::CancelledError("interrupted while measuring");
    }
    MILLRACE_ASSIGN_OR_RETURN(last,
                              ReadSample(url, server, interrupted.flag()));
    at_once += last.running + last.waiting;
    ++samples;
  }
  // Counters that fell belong to a coordinator that started again meanwhile.
  const bool enough = last.finished - first.finished >= kSequencesLeast;
  const Sample none;
  const Sample& from = enough ? first : none;
  const double sequences = last.finished - from.finished;
  if (sequences < 1) {
    return MakeError(absl::StatusCode::kUnavailable, url,
                     "has finished no sequence yet",
                     "measure while it serves, or give --prompt-len, "
                     "--output-len and --concurrency");
  }
  LiveLoad load;
  load.url = url;
  load.sequences = std::llround(sequences);
  load.prompt_len =
      WholeAtLeastOne((last.prompt_tokens - from.prompt_tokens) / sequences);
  load.output_len = WholeAtLeastOne(
      (last.generated_tokens - from.generated_tokens) / sequences);
  load.concurrency = WholeAtLeastOne(std::ceil(at_once / samples));
  load.seconds = absl::ToDoubleSeconds(clock.Monotonic() - start);
  load.lengths_since_start = !enough;
  return load;
}

}  // namespace millrace::cli
