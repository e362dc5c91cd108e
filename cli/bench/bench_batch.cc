#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "cli/bench/bench_options.h"
#include "cli/bench/model_cases.h"
#include "cli/commands.h"
#include "cli/number_checks.h"

namespace millrace::cli {
namespace {

constexpr int64_t kPromptLen = 32;
constexpr int64_t kOutputLen = 32;
// What the queue of an engine takes at once.
constexpr int64_t kBatchMax = 256;

class BenchBatchCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "batch"; }
  [[nodiscard]] const char* summary() const override {
    return "Tokens of many sequences while all of them decode";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace bench batch model.gguf --batch 1,4,16,32";
  }
  void Define(CLI::App& app) override {
    flags_.Define(app);
    app.add_option("--batch", batch_, "Sequences at once, as 1,4,16,32");
    app.add_option("--prompt-len", prompt_len_, "Tokens of each prompt");
    app.add_option("--output-len", output_len_,
                   "Tokens of each while all decode, at least 2");
  }
  absl::Status Run(Console& console) override;

 private:
  ModelBenchFlags flags_;
  std::string batch_ = "1,4,16,32";
  std::optional<int64_t> prompt_len_;
  std::optional<int64_t> output_len_;
};

absl::Status BenchBatchCommand::Run(Console& console) {
  MILLRACE_RETURN_IF_ERROR(
      CheckCount("--prompt-len", prompt_len_.value_or(1), 1, kLengthMax));
  MILLRACE_RETURN_IF_ERROR(
      CheckCount("--output-len", output_len_.value_or(2), 2, kLengthMax));
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> batches,
                            ParseCounts("--batch", batch_, kBatchMax));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<ModelBench> bench,
                            ModelBench::Open(flags_));
  std::vector<BenchLoad> loads;
  for (const int64_t batch : batches) {
    loads.push_back({.batch = batch,
                     .prompt_len = bench->LengthOr(prompt_len_, kPromptLen),
                     .output_len = bench->LengthOr(output_len_, kOutputLen)});
  }
  return RunModelBench(*bench, DecodeKind("batch"), loads, flags_.repeat,
                       console);
}

}  // namespace

std::unique_ptr<Command> MakeBenchBatchCommand() {
  return std::make_unique<BenchBatchCommand>();
}

}  // namespace millrace::cli
