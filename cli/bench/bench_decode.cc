#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "cli/bench/bench_options.h"
#include "cli/bench/model_cases.h"
#include "cli/commands.h"
#include "cli/number_checks.h"

namespace millrace::cli {
namespace {

constexpr int64_t kPromptLen = 128;
constexpr int64_t kOutputLen = 64;

class BenchDecodeCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "decode"; }
  [[nodiscard]] const char* summary() const override {
    return "Time of a token after the first, one sequence alone";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace bench decode model.gguf --output-len 128";
  }
  void Define(CLI::App& app) override {
    flags_.Define(app);
    app.add_option("--prompt-len", prompt_len_, "Tokens before it");
    app.add_option("--output-len", output_len_, "Tokens generated, at least 2");
  }
  absl::Status Run(Console& console) override;

 private:
  ModelBenchFlags flags_;
  std::optional<int64_t> prompt_len_;
  std::optional<int64_t> output_len_;
};

absl::Status BenchDecodeCommand::Run(Console& console) {
  MILLRACE_RETURN_IF_ERROR(
      CheckCount("--prompt-len", prompt_len_.value_or(1), 1, kLengthMax));
  MILLRACE_RETURN_IF_ERROR(
      CheckCount("--output-len", output_len_.value_or(2), 2, kLengthMax));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<ModelBench> bench,
                            ModelBench::Open(flags_));
  const BenchLoad load = {
      .batch = 1,
      .prompt_len = bench->LengthOr(prompt_len_, kPromptLen),
      .output_len = bench->LengthOr(output_len_, kOutputLen)};
  return RunModelBench(*bench, DecodeKind("decode"), {load}, flags_.repeat,
                       console);
}

}  // namespace

std::unique_ptr<Command> MakeBenchDecodeCommand() {
  return std::make_unique<BenchDecodeCommand>();
}

}  // namespace millrace::cli
