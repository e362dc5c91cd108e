#include "cli/model_host.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "cli/interrupt.h"
#include "model/tokenizer/open.h"

namespace millrace::cli {

absl::StatusOr<std::unique_ptr<model::Checkpoint>> OpenCheckpoint(
    const std::string& model) {
  const InterruptEndsProgram guard;
  return model::Checkpoint::Open(model);
}

absl::StatusOr<ModelHost> OpenModel(const std::string& model,
                                    ComputeOptions compute) {
  const InterruptEndsProgram guard;
  ModelHost host;
  MILLRACE_ASSIGN_OR_RETURN(host.checkpoint, model::Checkpoint::Open(model));
  MILLRACE_RETURN_IF_ERROR(FitToModel(host.checkpoint->spec(), compute));
  host.compute = std::move(compute);
  MILLRACE_ASSIGN_OR_RETURN(host.tokenizer,
                            model::TokenizerOf(*host.checkpoint));
  if (host.tokenizer != nullptr &&
      host.checkpoint->chat_template() != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(
        host.chat_template,
        model::ChatTemplate::Compile(*host.checkpoint->chat_template(),
                                     absl::StrCat(model, ": chat template")));
  }
  return host;
}

absl::Status StartPipeline(ModelHost& host, int64_t sequences,
                           worker::StageTap* tap, Console& console) {
  const SystemClock clock;
  const absl::Duration start = clock.Monotonic();
  LocalPipeline::Options options;
  options.compute = host.compute;
  options.sequences = sequences;
  options.tap = tap;
  options.cancelled = [] { return Interrupts() > 0; };
  std::atomic<int64_t> shown_percent{-1};
  options.progress = [&](const worker::LoadProgress& progress) {
    const int64_t percent =
        progress.bytes_done * 100 / std::max<int64_t>(1, progress.bytes_total);
    // Relaxed: at worst a line is drawn twice.
    if (shown_percent.exchange(percent, std::memory_order_relaxed) != percent) {
      console.Progress(absl::StrFormat("loading %d%% of %s", percent,
                                       HumanSize(progress.bytes_total)));
    }
  };
  MILLRACE_ASSIGN_OR_RETURN(host.pipeline,
                            LocalPipeline::Start(*host.checkpoint, options));
  console.Progress("");
  host.load_time = clock.Monotonic() - start;
  return absl::OkStatus();
}

absl::StatusOr<const model::Tokenizer*> NeedTokenizer(const ModelHost& host,
                                                      absl::string_view what) {
  if (host.tokenizer == nullptr) {
    return InputError(host.checkpoint->files().front(),
                      absl::StrCat("has no tokenizer, which ", what, " needs"),
                      "give token ids with --tokens");
  }
  return host.tokenizer.get();
}

}  // namespace millrace::cli
