#include "cli/compute_options.h"

#include <algorithm>
#include <thread>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "cli/number_checks.h"
#include "cli/number_list.h"
#include "kernels/kernel_table.h"

namespace millrace::cli {
namespace {

constexpr int64_t kStagesMax = 1000;
constexpr int64_t kThreadsMax = 1024;
constexpr int64_t kChunkMax = 16384;
constexpr int64_t kConcurrencyMax = 100'000;
constexpr int64_t kContextMax = int64_t{1} << 30;
// Long enough that a stage's products are bound by arithmetic, short enough
// that decode rows in the same frame do not wait long.
constexpr int64_t kChunkDefault = 256;

absl::Status OneOf(absl::string_view option, absl::string_view value,
                   absl::string_view values) {
  return UsageError(option,
                    absl::StrCat("'", Printable(value), "' is not known"),
                    absl::StrCat("give one of ", values));
}

absl::Status NotYet(absl::string_view option, absl::string_view value) {
  return UsageError(option,
                    absl::StrCat("'", value, "' is not in this version"));
}

absl::StatusOr<std::vector<int64_t>> ParseCuts(const std::string& text) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> cuts,
                            ParseNumberList(text, "--cuts", "layer"));
  bool rising = !cuts.empty();
  for (size_t i = 0; i < cuts.size(); ++i) {
    rising = rising && cuts[i] > (i == 0 ? 0 : cuts[i - 1]);
  }
  if (!rising) {
    return UsageError(
        "--cuts",
        absl::StrCat("'", Printable(text), "' is no rising list of layers"),
        "give the layers where new stages begin, as 10,20");
  }
  return cuts;
}

absl::StatusOr<kernels::Isa> ParseIsa(const std::string& text) {
  if (text == "auto") {
    return kernels::BestIsa();
  }
  for (int i = 0; i < kernels::kNumIsas; ++i) {
    const auto isa = static_cast<kernels::Isa>(i);
    if (text != kernels::IsaName(isa)) {
      continue;
    }
    if (!kernels::HostSupports(isa)) {
      return UsageError(
          "--kernels",
          absl::StrCat("this host has no ", absl::AsciiStrToUpper(text)),
          absl::StrCat("its best is ", kernels::IsaName(kernels::BestIsa())));
    }
    return isa;
  }
  return OneOf("--kernels", text, "auto, scalar, avx2, avx512, neon");
}

absl::StatusOr<kernels::KvType> ParseKv(const std::string& text,
                                        kernels::ComputeMode compute) {
  if (text.empty()) {
    return compute == kernels::ComputeMode::kExact ? kernels::KvType::kF32
                                                   : kernels::KvType::kF16;
  }
  if (text == "f16") {
    return kernels::KvType::kF16;
  }
  if (text == "f32") {
    return kernels::KvType::kF32;
  }
  if (text == "bf16") {
    return kernels::KvType::kBf16;
  }
  if (text == "int8") {
    return kernels::KvType::kInt8;
  }
  return OneOf("--kv", text, "f16, f32, bf16, int8");
}

absl::StatusOr<TransportChoice> ParseTransport(const std::string& text,
                                               bool several_processes) {
  if (text == "auto") {
    return several_processes ? TransportChoice::kTcp
                             : TransportChoice::kInProcess;
  }
  if (text == "inproc") {
    if (several_processes) {
      return UsageError("--transport",
                        "'inproc' needs all stages in one process",
                        "use `millrace serve`, or tcp");
    }
    return TransportChoice::kInProcess;
  }
  if (text == "tcp") {
    return TransportChoice::kTcp;
  }
  if (text == "rdma") {
    return NotYet("--transport", text);
  }
  return OneOf("--transport", text, "auto, inproc, tcp");
}

absl::StatusOr<kernels::ComputeMode> ParseCompute(const std::string& text) {
  if (text == "fast") {
    return kernels::ComputeMode::kFast;
  }
  if (text == "exact") {
    return kernels::ComputeMode::kExact;
  }
  return OneOf("--compute", text, "fast, exact");
}

// Threads per stage: the cores of this machine shared among the stages on it.
int DefaultThreads(int64_t stages) {
  const int64_t cores =
      std::max<int64_t>(1, std::thread::hardware_concurrency());
  return static_cast<int>(std::max<int64_t>(1, cores / stages));
}

}  // namespace

void ComputeFlags::Define(CLI::App& app) {
  app.add_option("--stages", stages, "Number of pipeline stages");
  app.add_option("--cuts", cuts, "Layers where a new stage begins, as 10,20");
  app.add_option("--transport", transport, "auto, inproc or tcp");
  app.add_option("--threads", threads, "Threads per stage");
  app.add_option("--kernels", kernels, "auto, scalar, avx2, avx512 or neon");
  app.add_option("--compute", compute, "fast or exact");
  app.add_option("--chunk", chunk, "Prefill rows per pass");
  app.add_option("--context", context,
                 "Longest prompt and answer together, in tokens");
  app.add_option("--kv", kv, "f16, f32, bf16 or int8 keys and values");
  app.add_option("--memory", memory, "Hard memory budget, as 29GB");
  app.add_option("--concurrency", concurrency,
                 "Sequences of full context that the KV pools hold");
}

absl::StatusOr<ComputeOptions> Validate(const ComputeFlags& flags,
                                        bool several_processes) {
  ComputeOptions options;
  if (flags.stages.has_value() && !flags.cuts.empty()) {
    return UsageError("--cuts", "cannot be given together with --stages",
                      "give one of the two");
  }
  if (flags.stages.has_value()) {
    MILLRACE_RETURN_IF_ERROR(
        CheckCount("--stages", *flags.stages, 1, kStagesMax));
    options.stages = *flags.stages;
  }
  if (!flags.cuts.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(options.cuts, ParseCuts(flags.cuts));
    options.stages = static_cast<int64_t>(options.cuts.size()) + 1;
  }
  MILLRACE_ASSIGN_OR_RETURN(options.transport,
                            ParseTransport(flags.transport, several_processes));
  MILLRACE_ASSIGN_OR_RETURN(options.isa, ParseIsa(flags.kernels));
  MILLRACE_ASSIGN_OR_RETURN(options.compute, ParseCompute(flags.compute));
  MILLRACE_ASSIGN_OR_RETURN(options.kv_type,
                            ParseKv(flags.kv, options.compute));
  options.num_threads = DefaultThreads(options.stages);
  if (flags.threads.has_value()) {
    MILLRACE_RETURN_IF_ERROR(
        CheckCount("--threads", *flags.threads, 1, kThreadsMax));
    options.num_threads = static_cast<int>(*flags.threads);
  }
  options.chunk = kChunkDefault;
  if (flags.chunk.has_value()) {
    MILLRACE_RETURN_IF_ERROR(CheckCount("--chunk", *flags.chunk, 1, kChunkMax));
    options.chunk = *flags.chunk;
  }
  if (flags.context.has_value()) {
    MILLRACE_RETURN_IF_ERROR(
        CheckCount("--context", *flags.context, 1, kContextMax));
    options.context = *flags.context;
  }
  if (flags.concurrency.has_value()) {
    MILLRACE_RETURN_IF_ERROR(
        CheckCount("--concurrency", *flags.concurrency, 1, kConcurrencyMax));
    options.concurrency = *flags.concurrency;
  }
  if (!flags.memory.empty()) {
    const absl::StatusOr<int64_t> bytes = ParseSize(flags.memory);
    if (!bytes.ok()) {
      return WithObject(bytes.status(), "--memory");
    }
    options.memory_bytes = *bytes;
  }
  return options;
}

absl::Status CheckContext(absl::string_view option, int64_t context,
                          const model::ModelSpec& spec) {
  if (context <= spec.context_length) {
    return absl::OkStatus();
  }
  return UsageError(
      option,
      absl::StrCat(context, " is more than the ", spec.context_length,
                   " that the model was made for"),
      absl::StrCat("give at most ", spec.context_length));
}

absl::Status FitToModel(const model::ModelSpec& spec, ComputeOptions& options) {
  const auto layers = static_cast<int64_t>(spec.layers.size());
  // First: too many cuts, which rise, are beyond the layers as well.
  if (!options.cuts.empty() && options.cuts.back() >= layers) {
    return UsageError("--cuts",
                      absl::StrCat("a stage cannot begin at layer ",
                                   options.cuts.back(), " of ", layers),
                      absl::StrCat("layers count from 0 to ", layers - 1));
  }
  if (options.stages > layers) {
    return UsageError("--stages",
                      absl::StrCat(options.stages, " stages for a model of ",
                                   Counted(layers, "layer")),
                      absl::StrCat("give at most ", layers));
  }
  if (options.context == 0) {
    options.context = spec.context_length;
  }
  return CheckContext("--context", options.context, spec);
}

void SamplingFlags::Define(CLI::App& app) {
  app.add_option("--max-tokens", max_tokens, "Tokens to generate at most");
  app.add_option("--temperature", temperature, "0: always the likeliest token");
  app.add_option("--top-k", top_k, "Only the k likeliest tokens; 0: all");
  app.add_option("--top-p", top_p, "Only the likeliest tokens up to this mass");
  app.add_option("--min-p", min_p,
                 "Only tokens at least this likely relative to the likeliest");
  app.add_option("--presence-penalty", presence_penalty,
                 "Taken off the logit of tokens in the answer");
  app.add_option("--frequency-penalty", frequency_penalty,
                 "The same, times how often they are there");
  app.add_option("--repetition-penalty", repetition_penalty,
                 "Divides the logit of tokens in prompt and answer");
  app.add_option("--seed", seed, "Of the random choices");
  app.add_option("--stop", stop, "Text that ends the answer; may be repeated");
  app.add_flag("--ignore-eos", ignore_eos,
               "Go on behind the model's end tokens");
}

absl::StatusOr<SamplingChoice> Validate(
    const SamplingFlags& flags,
    const std::optional<model::GenerationDefaults>& defaults) {
  if (flags.max_tokens.has_value()) {
    MILLRACE_RETURN_IF_ERROR(
        CheckCount("--max-tokens", *flags.max_tokens, 1, kContextMax));
  }
  MILLRACE_RETURN_IF_ERROR(
      CheckNumber("--temperature", flags.temperature, 0, 100));
  MILLRACE_RETURN_IF_ERROR(CheckNumber("--top-p", flags.top_p, 0, 1));
  MILLRACE_RETURN_IF_ERROR(CheckNumber("--min-p", flags.min_p, 0, 1));
  MILLRACE_RETURN_IF_ERROR(
      CheckNumber("--presence-penalty", flags.presence_penalty, -2, 2));
  MILLRACE_RETURN_IF_ERROR(
      CheckNumber("--frequency-penalty", flags.frequency_penalty, -2, 2));
  MILLRACE_RETURN_IF_ERROR(
      CheckNumber("--repetition-penalty", flags.repetition_penalty, 0.01, 100));
  if (flags.top_k.has_value()) {
    MILLRACE_RETURN_IF_ERROR(
        CheckCount("--top-k", *flags.top_k, 0, kContextMax));
  }
  model::GenerationDefaults model;
  if (defaults.has_value()) {
    model = *defaults;
  }
  SamplingChoice choice;
  choice.max_tokens = flags.max_tokens;
  choice.temperature = flags.temperature.value_or(
      model.do_sample ? model.temperature.value_or(1.0) : 0.0);
  choice.top_k = flags.top_k.value_or(
      std::max<int64_t>(0, model.top_k.value_or(0)));  // -1: all, too
  choice.top_p = flags.top_p.value_or(model.top_p.value_or(1.0));
  choice.min_p = flags.min_p.value_or(model.min_p.value_or(0.0));
  choice.presence_penalty = flags.presence_penalty.value_or(0);
  choice.frequency_penalty = flags.frequency_penalty.value_or(0);
  choice.repetition_penalty =
      flags.repetition_penalty.value_or(model.repetition_penalty.value_or(1.0));
  choice.seed = flags.seed;
  for (const std::string& text : flags.stop) {
    if (text.empty()) {
      return UsageError("--stop", "an empty text would end every answer",
                        "leave it out");
    }
    choice.stop.push_back(text);
  }
  choice.ignore_eos = flags.ignore_eos;
  return choice;
}

}  // namespace millrace::cli
