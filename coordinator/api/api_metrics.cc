#include "coordinator/api/api_metrics.h"

#include <array>
#include <sstream>
#include <utility>
#include <vector>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/histogram.h"
#include "prometheus/metric_family.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace millrace::coordinator {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Upper bounds in seconds. The first token waits for a whole prompt, so its
// times spread from milliseconds to minutes.
const prometheus::Histogram::BucketBoundaries kFirstTokenSeconds = {
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
const prometheus::Histogram::BucketBoundaries kTokenIntervalSeconds = {
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075,
    0.1,   0.15,   0.2,   0.3,  0.5,  1,    2.5};
const prometheus::Histogram::BucketBoundaries kRequestSeconds = {
    0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};

constexpr std::array<const char*, 4> kOutcomes = {"completed", "refused",
                                                  "cancelled", "failed"};

ClientMetric Plain(MetricType type, double value) {
  ClientMetric metric;
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return metric;
}

class FamilyList {
 public:
  void Add(MetricType type, const char* name, const char* help, double value) {
    families_.push_back({name, help, type, {Plain(type, value)}});
  }

  // One value a stage, labelled with its place in the plan and its name.
  template <typename Value>
  void AddPerStage(MetricType type, const char* name, const char* help,
                   const EngineSnapshot& snapshot, Value value) {
    MetricFamily family{name, help, type, {}};
    for (size_t i = 0; i < snapshot.stages.size(); ++i) {
      const StageSnapshot& stage = snapshot.stages[i];
      ClientMetric metric = Plain(type, static_cast<double>(value(stage)));
      metric.label = {{"stage", std::to_string(i)}, {"name", stage.name}};
      family.metric.push_back(std::move(metric));
    }
    if (!family.metric.empty()) {
      families_.push_back(std::move(family));
    }
  }

  // One series a stage and kernel version, always 1.
  void AddKernels(const EngineSnapshot& snapshot) {
    MetricFamily family{"millrace_stage_kernel_info",
                        "Version of each kernel that the stage runs; always 1",
                        MetricType::Gauge,
                        {}};
    for (size_t i = 0; i < snapshot.stages.size(); ++i) {
      const StageSnapshot& stage = snapshot.stages[i];
      for (const control::KernelUse& use : stage.kernels) {
        ClientMetric metric = Plain(MetricType::Gauge, 1);
        metric.label = {{"stage", std::to_string(i)},
                        {"name", stage.name},
                        {"kernel", use.kernel},
                        {"compute", use.compute},
                        {"version", use.version}};
        family.metric.push_back(std::move(metric));
      }
    }
    if (!family.metric.empty()) {
      families_.push_back(std::move(family));
    }
  }

  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

void AddCoordinator(const EngineSnapshot& snapshot, int64_t num_connections,
                    FamilyList& list) {
  const auto count = [](int64_t value) { return static_cast<double>(value); };
  const MetricType gauge = MetricType::Gauge;
  const MetricType counter = MetricType::Counter;
  list.Add(gauge, "millrace_coordinator_ready",
           "1 while requests are served, else 0", snapshot.ready ? 1 : 0);
  list.Add(gauge, "millrace_coordinator_epoch", "Generation number of the plan",
           static_cast<double>(snapshot.epoch));
  list.Add(gauge, "millrace_coordinator_http_connections",
           "Open client connections", count(num_connections));
  list.Add(gauge, "millrace_coordinator_sequences_running",
           "Sequences that hold memory on the stages",
           count(snapshot.requests_running));
  list.Add(gauge, "millrace_coordinator_sequences_waiting",
           "Sequences in the queue", count(snapshot.requests_waiting));
  list.Add(counter, "millrace_coordinator_sequences_finished_total",
           "Sequences that ended by themselves",
           count(snapshot.requests_finished));
  list.Add(counter, "millrace_coordinator_sequences_failed_total",
           "Sequences that ended in an error", count(snapshot.requests_failed));
  list.Add(counter, "millrace_coordinator_sequences_cancelled_total",
           "Sequences whose client went away or needed no more",
           count(snapshot.requests_cancelled));
  list.Add(counter, "millrace_coordinator_sequences_refused_total",
           "Sequences refused by the queue", count(snapshot.requests_refused));
  list.Add(counter, "millrace_coordinator_prompt_tokens_total",
           "Tokens of prompts read", count(snapshot.prompt_tokens));
  list.Add(counter, "millrace_coordinator_generated_tokens_total",
           "Tokens generated", count(snapshot.generated_tokens));
  list.Add(gauge, "millrace_coordinator_microbatches_in_flight",
           "Micro-batches on their way through the pipeline",
           count(snapshot.microbatches_in_flight));
  list.Add(gauge, "millrace_coordinator_microbatch_slots",
           "Micro-batches that fill the pipeline (N)",
           count(snapshot.microbatch_slots));
  list.Add(gauge, "millrace_coordinator_pipeline_fill_ratio",
           "Mean of micro-batches in flight over N while any request ran",
           snapshot.pipeline_fill);
  list.Add(gauge, "millrace_coordinator_cycle_seconds",
           "Median round trip of a micro-batch",
           absl::ToDoubleSeconds(snapshot.cycle_p50));
}

void AddStages(const EngineSnapshot& snapshot, FamilyList& list) {
  using Stage = const StageSnapshot&;
  const MetricType gauge = MetricType::Gauge;
  const MetricType counter = MetricType::Counter;
  list.AddPerStage(gauge, "millrace_stage_alive",
                   "1 while the stage answers, else 0", snapshot,
                   [](Stage stage) { return stage.alive ? 1 : 0; });
  list.AddPerStage(gauge, "millrace_stage_first_layer", "First layer it holds",
                   snapshot, [](Stage stage) { return stage.first_layer; });
  list.AddPerStage(gauge, "millrace_stage_last_layer", "Last layer it holds",
                   snapshot, [](Stage stage) { return stage.last_layer; });
  list.AddPerStage(
      counter, "millrace_stage_busy_seconds_total", "Time spent computing",
      snapshot, [](Stage stage) { return absl::ToDoubleSeconds(stage.busy); });
  list.AddPerStage(
      counter, "millrace_stage_wait_for_input_seconds_total",
      "Time without a micro-batch to work on", snapshot,
      [](Stage stage) { return absl::ToDoubleSeconds(stage.wait_for_input); });
  list.AddPerStage(
      counter, "millrace_stage_wait_for_credit_seconds_total",
      "Time in which the next stage had no room", snapshot,
      [](Stage stage) { return absl::ToDoubleSeconds(stage.wait_for_credit); });
  list.AddPerStage(counter, "millrace_stage_frames_total", "Frames computed",
                   snapshot, [](Stage stage) { return stage.frames; });
  list.AddPerStage(counter, "millrace_stage_rows_total",
                   "Rows (tokens) computed", snapshot,
                   [](Stage stage) { return stage.rows; });
  list.AddPerStage(gauge, "millrace_stage_kv_blocks_used", "KV blocks in use",
                   snapshot, [](Stage stage) { return stage.kv_blocks_used; });
  list.AddPerStage(gauge, "millrace_stage_kv_blocks", "KV blocks the stage has",
                   snapshot, [](Stage stage) { return stage.kv_blocks_total; });
  list.AddPerStage(gauge, "millrace_stage_resident_bytes",
                   "Resident memory of the stage's process", snapshot,
                   [](Stage stage) { return stage.resident_bytes; });
  list.AddKernels(snapshot);
}

}  // namespace

struct ApiMetrics::Series {
  prometheus::Registry registry;
  std::array<prometheus::Counter*, kOutcomes.size()> requests{};
  prometheus::Histogram* first_token = nullptr;
  prometheus::Histogram* token_interval = nullptr;
  prometheus::Histogram* request = nullptr;
};

ApiMetrics::ApiMetrics() : series_(std::make_unique<Series>()) {
  auto& requests = prometheus::BuildCounter()
                       .Name("millrace_coordinator_requests_total")
                       .Help("Requests to generate, by how they ended")
                       .Register(series_->registry);
  for (size_t i = 0; i < kOutcomes.size(); ++i) {
    series_->requests[i] = &requests.Add({{"outcome", kOutcomes[i]}});
  }
  series_->first_token =
      &prometheus::BuildHistogram()
           .Name("millrace_coordinator_time_to_first_token_seconds")
           .Help("From a request's arrival to the first token of a sequence")
           .Register(series_->registry)
           .Add({}, kFirstTokenSeconds);
  series_->token_interval =
      &prometheus::BuildHistogram()
           .Name("millrace_coordinator_time_per_output_token_seconds")
           .Help("Mean time between the tokens of a sequence")
           .Register(series_->registry)
           .Add({}, kTokenIntervalSeconds);
  series_->request =
      &prometheus::BuildHistogram()
           .Name("millrace_coordinator_request_seconds")
           .Help("From a request's arrival to the end of its answer")
           .Register(series_->registry)
           .Add({}, kRequestSeconds);
}

ApiMetrics::~ApiMetrics() = default;

void ApiMetrics::CountRequest(RequestOutcome outcome) {
  series_->requests[static_cast<size_t>(outcome)]->Increment();
}

void ApiMetrics::ObserveFirstToken(absl::Duration time) {
  series_->first_token->Observe(absl::ToDoubleSeconds(time));
}

void ApiMetrics::ObserveTokenInterval(absl::Duration time) {
  series_->token_interval->Observe(absl::ToDoubleSeconds(time));
}

void ApiMetrics::ObserveRequest(absl::Duration time) {
  series_->request->Observe(absl::ToDoubleSeconds(time));
}

std::string ApiMetrics::Serialize(const EngineSnapshot& snapshot,
                                  int64_t num_connections) const {
  FamilyList list;
  AddCoordinator(snapshot, num_connections, list);
  AddStages(snapshot, list);
  std::vector<MetricFamily> families = list.Take();
  for (MetricFamily& family : series_->registry.Collect()) {
    families.push_back(std::move(family));
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace millrace::coordinator
