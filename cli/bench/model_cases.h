#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "cli/bench/machine_meter.h"
#include "cli/bench/model_bench.h"
#include "cli/bench/model_work.h"

namespace millrace::cli {

// One run of a load, and what the machine could do right before.
struct ModelSample {
  int64_t tokens = 0;       // that the rate counts
  double tokens_per_s = 0;  // of all sequences
  double seconds = 0;       // to the first token, or between two of a sequence
  MachineRates rates;
};

// A load and its runs.
struct ModelCase {
  BenchLoad load;
  // What one token costs, in the mean.
  Work work;
  std::optional<double> weight_bytes;
  std::vector<ModelSample> samples;

  [[nodiscard]] double OperationsPerSecond(const ModelSample& sample) const;
  [[nodiscard]] std::optional<double> WeightBytesPerSecond(
      const ModelSample& sample) const;
  // Of what the machine could do right before.
  [[nodiscard]] std::optional<double> MemoryShare(
      const ModelSample& sample) const;
  [[nodiscard]] std::optional<double> PeakShare(
      const ModelSample& sample) const;
};

// What a benchmark of a model is, beside its loads.
struct ModelBenchKind {
  const char* name = "";          // decode, prefill, batch
  const char* seconds_key = "";   // of JSON: ttft_s or tpot_s
  const char* seconds_name = "";  // for people: TTFT or TPOT
  // Costs of a token of a load.
  std::function<void(const ModelBench&, ModelCase&)> cost;
  // What the times of a run say.
  std::function<ModelSample(const BenchLoad&,
                            const std::vector<SequenceTimes>&)>
      sample;
};

// Loads the model, runs every load once unmeasured and `repeat` times measured,
// and reports: one JSON document, or a table with a line as soon as a load is
// done.
absl::Status RunModelBench(ModelBench& bench, const ModelBenchKind& kind,
                           const std::vector<BenchLoad>& loads, int64_t repeat,
                           Console& console);

// Decoding, of one sequence or of many.
ModelBenchKind DecodeKind(const char* name);

}  // namespace millrace::cli
