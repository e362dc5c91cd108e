#include "cli/bench/model_bench.h"

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "cli/bench/bench_options.h"
#include "cli/bench/timed_sequences.h"
#include "cli/model_host.h"
#include "cli/number_checks.h"
#include "kernels/kernel_table.h"
#include "model/spec/model_costs.h"

namespace millrace::cli {
namespace {

constexpr uint64_t kPromptSeed = 1;
// The smallest piece in which a pipeline of several stages reads prompts.
constexpr int64_t kPieceRowsMin = 16;
// A default length takes at most this part of a context.
constexpr int64_t kContextParts = 4;

const char* KvName(kernels::KvType type) {
  switch (type) {
    case kernels::KvType::kF32:
      return "f32";
    case kernels::KvType::kF16:
      return "f16";
    case kernels::KvType::kBf16:
      return "bf16";
    case kernels::KvType::kInt8:
      return "int8";
  }
  return "unknown";
}

}  // namespace

void ModelBenchFlags::Define(CLI::App& app) {
  app.add_option("MODEL", model, "Model directory or GGUF file")->required();
  app.add_option("--repeat", repeat, "Times that each is measured");
  compute.Define(app);
}

int64_t BenchLoad::TokensMax(const ComputeOptions& compute) const {
  if (batch == 1) {
    return output_len;
  }
  const int64_t piece = compute.stages == 1
                            ? compute.chunk
                            : std::min(compute.chunk, kPieceRowsMin);
  return output_len + (batch * prompt_len + piece - 1) / piece;
}

absl::StatusOr<std::unique_ptr<ModelBench>> ModelBench::Open(
    const ModelBenchFlags& flags) {
  MILLRACE_RETURN_IF_ERROR(CheckCount("--repeat", flags.repeat, 1, kRepeatMax));
  ModelHost host;
  MILLRACE_ASSIGN_OR_RETURN(host.compute, Validate(flags.compute, false));
  // Those of one stage; several stages may share the cores, as they do where
  // they serve.
  MILLRACE_RETURN_IF_ERROR(MeasuringThreads(flags.compute.threads).status());
  // Random token ids need no tokenizer.
  MILLRACE_ASSIGN_OR_RETURN(host.checkpoint, OpenCheckpoint(flags.model));
  MILLRACE_RETURN_IF_ERROR(FitToModel(host.checkpoint->spec(), host.compute));
  return std::unique_ptr<ModelBench>(
      new ModelBench(std::move(host), flags.compute.context.has_value()));
}

int64_t ModelBench::LengthOr(const std::optional<int64_t>& asked,
                             int64_t otherwise) const {
  return asked.value_or(
      std::max<int64_t>(1, std::min(otherwise, context_ / kContextParts)));
}

absl::Status ModelBench::Start(const std::vector<BenchLoad>& loads,
                               Console& console) {
  int64_t context = 0;
  int64_t batch = 1;
  absl::string_view option = "--prompt-len";
  for (const BenchLoad& load : loads) {
    context =
        std::max(context, load.prompt_len + load.TokensMax(host_.compute));
    batch = std::max(batch, load.batch);
    if (load.output_len > 1) {
      option = "--prompt-len and --output-len";
    }
  }
  if (context > context_) {
    return UsageError(
        option,
        absl::StrCat("asks for ", context, " positions of a context of ",
                     context_),
        batch > 1 ? "give less, or a smaller --batch" : "give less");
  }
  if (!context_given_) {
    host_.compute.context = context;
  }
  if (host_.compute.concurrency > 0 && host_.compute.concurrency < batch) {
    return UsageError("--concurrency",
                      absl::StrCat(host_.compute.concurrency,
                                   " is less than a batch of ", batch),
                      "leave it out");
  }
  MILLRACE_RETURN_IF_ERROR(StartPipeline(
      host_, std::max(batch, host_.compute.concurrency), nullptr, console));
  // All stages may work at once, on no more cores than there are.
  MILLRACE_ASSIGN_OR_RETURN(const int cores, MeasuringThreads({}));
  const int64_t threads = std::min<int64_t>(
      host_.compute.stages * host_.compute.num_threads, cores);
  MILLRACE_ASSIGN_OR_RETURN(
      meter_,
      MachineMeter::Create(host_.compute.isa, static_cast<int>(threads)));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SequenceTimes>> ModelBench::Run(
    const BenchLoad& load) {
  return RunTimed(host_.pipeline->engine(),
                  RandomPrompts(load.batch, load.prompt_len, spec().vocab_size,
                                kPromptSeed),
                  load.TokensMax(host_.compute));
}

std::optional<double> ModelBench::ReadsPerRound(int64_t batch) const {
  if (HasExperts(spec()) && batch > 1) {
    return std::nullopt;
  }
  return static_cast<double>(
      std::min(batch, host_.pipeline->config().microbatches));
}

std::string ModelBench::Title() const {
  const ComputeOptions& compute = host_.compute;
  return absl::StrFormat(
      "%s: %s of weights, loaded in %s; %s of %s, %s kernels, %s",
      spec().name.empty() ? spec().family : spec().name,
      HumanSize(model::CostsOf(spec()).weights_bytes()),
      HumanDuration(host_.load_time), Counted(compute.stages, "stage"),
      Counted(compute.num_threads, "thread"), kernels::IsaName(compute.isa),
      ComputeName(compute.compute));
}

boost::json::object ModelBench::Describe() const {
  const ComputeOptions& compute = host_.compute;
  const model::PartCosts costs = model::CostsOf(spec());
  return {{"model",
           {{"name", spec().name},
            {"family", spec().family},
            {"digest", spec().digest},
            {"layers", spec().layers.size()},
            {"parameters", costs.parameters},
            {"weights_bytes", costs.weights_bytes()},
            {"read_bytes_per_token", costs.read_bytes_per_token}}},
          {"load_s", absl::ToDoubleSeconds(host_.load_time)},
          {"stages", compute.stages},
          {"threads", compute.num_threads},
          {"kernels", kernels::IsaName(compute.isa)},
          {"compute", ComputeName(compute.compute)},
          {"kv", KvName(compute.kv_type)},
          {"chunk", compute.chunk},
          {"context", compute.context},
          {"seed", kPromptSeed}};
}

}  // namespace millrace::cli
