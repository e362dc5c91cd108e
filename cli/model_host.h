#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/compute_options.h"
#include "cli/console.h"
#include "cli/local_pipeline.h"
#include "model/chat/chat_template.h"
#include "model/checkpoint/checkpoint.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::cli {

// A model opened for a command that computes in this process: checkpoint,
// tokenizer and template where it has them, and the running pipeline.
struct ModelHost {
  std::unique_ptr<model::Checkpoint> checkpoint;
  std::unique_ptr<model::Tokenizer> tokenizer;         // null: ids only
  std::unique_ptr<model::ChatTemplate> chat_template;  // null: none
  ComputeOptions compute;
  std::unique_ptr<LocalPipeline> pipeline;
  absl::Duration load_time;
};

// Reads what surrounds the weights, which may take long on a slow disk: an
// interrupt meanwhile ends the program.
absl::StatusOr<std::unique_ptr<model::Checkpoint>> OpenCheckpoint(
    const std::string& model);
// Opens the checkpoint and its tokenizer, likewise; no weights are read.
absl::StatusOr<ModelHost> OpenModel(const std::string& model,
                                    ComputeOptions compute);
// Loads the weights and starts the pipeline, with progress on the console.
absl::Status StartPipeline(ModelHost& host, int64_t sequences,
                           worker::StageTap* tap, Console& console);

// The tokenizer, or an error that names what the model lacks.
absl::StatusOr<const model::Tokenizer*> NeedTokenizer(const ModelHost& host,
                                                      absl::string_view what);

}  // namespace millrace::cli
