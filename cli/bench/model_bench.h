#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "boost/json/object.hpp"
#include "cli/bench/machine_meter.h"
#include "cli/bench/model_work.h"
#include "cli/bench/statistics.h"
#include "cli/compute_options.h"
#include "cli/console.h"
#include "cli/model_host.h"

namespace CLI {
class App;
}  // namespace CLI

namespace millrace::cli {

// The options of every benchmark of a model.
struct ModelBenchFlags {
  std::string model;
  int64_t repeat = 5;
  ComputeFlags compute;

  // Adds them; the lengths and batches are the command's.
  void Define(CLI::App& app);
};

// Sequences that run together.
struct BenchLoad {
  int64_t batch = 1;
  int64_t prompt_len = 0;
  int64_t output_len = 1;  // tokens of each while all of them generate

  // Tokens that one sequence generates in all: those that begin early do so
  // while the prompts of others are still being read.
  [[nodiscard]] int64_t TokensMax(const ComputeOptions& compute) const;
};

// A model in this process that loads are run on. Main thread.
class ModelBench {
 public:
  // Opens the model; no weights are read.
  static absl::StatusOr<std::unique_ptr<ModelBench>> Open(
      const ModelBenchFlags& flags);
  ModelBench(const ModelBench&) = delete;
  ModelBench& operator=(const ModelBench&) = delete;

  // A length that was asked for, else `otherwise`, or less where a quarter of
  // the context is less: the model's or the one asked for, not that which Start
  // chooses for its loads.
  [[nodiscard]] int64_t LengthOr(const std::optional<int64_t>& asked,
                                 int64_t otherwise) const;
  // Loads the weights and starts the pipeline for the largest of `loads`.
  // UsageError naming the lengths where they are longer than the context.
  absl::Status Start(const std::vector<BenchLoad>& loads, Console& console);

  // Runs a load once.
  absl::StatusOr<std::vector<SequenceTimes>> Run(const BenchLoad& load);
  [[nodiscard]] MachineRates MeasureMachine() { return meter_->Measure(); }
  // Of the meter that MeasureMachine uses.
  [[nodiscard]] std::string MachineWarning() const { return meter_->Warning(); }

  [[nodiscard]] const model::ModelSpec& spec() const {
    return host_.checkpoint->spec();
  }
  [[nodiscard]] const ComputeOptions& compute() const { return host_.compute; }
  // How often the weights are read while `batch` sequences get a token each;
  // none where it depends on which experts they choose.
  [[nodiscard]] std::optional<double> ReadsPerRound(int64_t batch) const;

  // For people, one line; for JSON: model, load_s and how it is computed.
  [[nodiscard]] std::string Title() const;
  [[nodiscard]] boost::json::object Describe() const;

 private:
  ModelBench(ModelHost host, bool context_given)
      : host_(std::move(host)),
        context_(host_.compute.context),
        context_given_(context_given) {}

  ModelHost host_;
  const int64_t context_;
  const bool context_given_;
  std::unique_ptr<MachineMeter> meter_;
};

}  // namespace millrace::cli
