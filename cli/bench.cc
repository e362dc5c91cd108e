#include "absl/status/status.h"
#include "cli/commands.h"

namespace millrace::cli {
namespace {

class BenchCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "bench"; }
  [[nodiscard]] const char* summary() const override {
    return "Measure this machine: kernels, or a model on it";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace bench decode model.gguf";
  }
  [[nodiscard]] std::vector<std::unique_ptr<Command>> MakeParts()
      const override {
    std::vector<std::unique_ptr<Command>> parts;
    parts.push_back(MakeBenchKernelsCommand());
    parts.push_back(MakeBenchDecodeCommand());
    parts.push_back(MakeBenchPrefillCommand());
    parts.push_back(MakeBenchBatchCommand());
    return parts;
  }
  [[nodiscard]] std::vector<std::string> LaterParts() const override {
    return {"experts", "serve"};
  }
  void Define(CLI::App& /*app*/) override {}
  absl::Status Run(Console& /*console*/) override {
    return absl::InternalError("bench is run by its parts");
  }
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() {
  return std::make_unique<BenchCommand>();
}

}  // namespace millrace::cli
