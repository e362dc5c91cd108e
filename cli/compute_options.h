#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/compute_mode.h"
#include "model/checkpoint/checkpoint.h"
#include "model/spec/model_spec.h"

namespace CLI {
class App;
}  // namespace CLI

namespace millrace::cli {

enum class TransportChoice { kInProcess, kTcp };

// The options that every command which computes takes, as they were typed.
struct ComputeFlags {
  std::optional<int64_t> stages;
  std::string cuts;
  std::string transport = "auto";
  std::optional<int64_t> threads;
  std::string kernels = "auto";
  std::string compute = "fast";
  std::optional<int64_t> chunk;
  std::optional<int64_t> context;
  std::string kv;
  std::string memory;
  std::optional<int64_t> concurrency;

  void Define(CLI::App& app);
};

// The same, validated; layers and memory are still to be set against a model.
struct ComputeOptions {
  int64_t stages = 1;
  std::vector<int64_t> cuts;  // first layers of the stages but the first
  TransportChoice transport = TransportChoice::kInProcess;
  int num_threads = 1;  // per stage
  kernels::Isa isa = kernels::Isa::kScalar;
  kernels::ComputeMode compute = kernels::ComputeMode::kFast;
  kernels::KvType kv_type = kernels::KvType::kF16;
  int64_t chunk = 256;
  int64_t context = 0;  // 0: the model's own
  std::optional<int64_t> memory_bytes;
  int64_t concurrency = 0;  // 0: the command's default
};
// UsageError (exit 2) naming the option. `several_processes`: auto transport is
// TCP.
absl::StatusOr<ComputeOptions> Validate(const ComputeFlags& flags,
                                        bool several_processes);

// UsageError where `context` is longer than the model was made for: behind its
// length rotations are extrapolated, and the answer would be noise.
[[nodiscard]] absl::Status CheckContext(absl::string_view option,
                                        int64_t context,
                                        const model::ModelSpec& spec);

// Checks against the model and fills in what depends on it: cuts inside the
// layers, context at most the model's.
absl::Status FitToModel(const model::ModelSpec& spec, ComputeOptions& options);

// How tokens are chosen, as typed; unset ones come from the model's
// generation_config.json, else greedy.
struct SamplingFlags {
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<double> repetition_penalty;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  bool ignore_eos = false;

  void Define(CLI::App& app);
};

// The same, validated. The meaning of each number: stage-worker/sampling and
// transport::SamplingOptions.
struct SamplingChoice {
  std::optional<int64_t> max_tokens;  // >= 1; none: the command's default
  double temperature = 0;             // >= 0; 0: the likeliest token
  int64_t top_k = 0;                  // 0: all
  double top_p = 1;                   // 0 to 1; 1: all
  double min_p = 0;                   // 0 to 1, of the likeliest; 0: all
  double presence_penalty = 0;        // of a logit, -2 to 2
  double frequency_penalty = 0;       // of a logit and occurrence, -2 to 2
  double repetition_penalty = 1;      // factor, > 0; 1: none
  std::optional<uint64_t> seed;       // none: one is drawn
  std::vector<std::string> stop;      // none empty
  bool ignore_eos = false;
};
// UsageError naming the flag that is out of range.
absl::StatusOr<SamplingChoice> Validate(
    const SamplingFlags& flags,
    const std::optional<model::GenerationDefaults>& defaults);

}  // namespace millrace::cli
