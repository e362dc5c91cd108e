#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "cli/bench/bench_options.h"
#include "cli/bench/model_cases.h"
#include "cli/commands.h"
#include "model/spec/model_costs.h"

namespace millrace::cli {
namespace {

constexpr int64_t kPromptLen = 512;

class BenchPrefillCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "prefill"; }
  [[nodiscard]] const char* summary() const override {
    return "Time from a prompt to its first token";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace bench prefill model.gguf --prompt-len 128,512";
  }
  void Define(CLI::App& app) override {
    flags_.Define(app);
    app.add_option("--prompt-len", prompt_lens_,
                   "Tokens of a prompt, as 128,512");
  }
  absl::Status Run(Console& console) override;

 private:
  ModelBenchFlags flags_;
  std::string prompt_lens_;
};

void AddCost(const ModelBench& bench, ModelCase& measured) {
  const model::ModelSpec& spec = bench.spec();
  const auto rows = static_cast<double>(measured.load.prompt_len);
  measured.work =
      PrefillWork(spec, bench.compute().compute, measured.load.prompt_len);
  measured.work *= 1 / rows;
  // A lone stage reads its layers once a chunk. Several get smaller pieces, and
  // which experts a chunk needs is not known before.
  if (bench.compute().stages > 1 || HasExperts(spec)) {
    return;
  }
  const int64_t chunk =
      std::min(bench.compute().chunk, bench.compute().context);
  const auto passes =
      static_cast<double>((measured.load.prompt_len + chunk - 1) / chunk);
  const auto head =
      static_cast<double>(model::HeadCosts(spec).read_bytes_per_token);
  const auto all =
      static_cast<double>(model::CostsOf(spec).read_bytes_per_token);
  measured.weight_bytes = (passes * (all - head) + head) / rows;
}

ModelSample SampleOf(const BenchLoad& load,
                     const std::vector<SequenceTimes>& times) {
  ModelSample sample;
  sample.seconds =
      absl::ToDoubleSeconds(times[0].tokens.at(0) - times[0].submitted);
  sample.tokens = load.prompt_len;
  sample.tokens_per_s = static_cast<double>(load.prompt_len) / sample.seconds;
  return sample;
}

absl::Status BenchPrefillCommand::Run(Console& console) {
  std::vector<int64_t> lengths;
  if (!prompt_lens_.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(
        lengths, ParseCounts("--prompt-len", prompt_lens_, kLengthMax));
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<ModelBench> bench,
                            ModelBench::Open(flags_));
  if (lengths.empty()) {
    lengths.push_back(bench->LengthOr(std::nullopt, kPromptLen));
  }
  std::vector<BenchLoad> loads;
  for (const int64_t length : lengths) {
    loads.push_back({.batch = 1, .prompt_len = length, .output_len = 1});
  }
  ModelBenchKind kind;
  kind.name = "prefill";
  kind.seconds_key = "ttft_s";
  kind.seconds_name = "TTFT";
  kind.cost = AddCost;
  kind.sample = SampleOf;
  return RunModelBench(*bench, kind, loads, flags_.repeat, console);
}

}  // namespace

std::unique_ptr<Command> MakeBenchPrefillCommand() {
  return std::make_unique<BenchPrefillCommand>();
}

}  // namespace millrace::cli
