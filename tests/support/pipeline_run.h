#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "cli/local_pipeline.h"
#include "coordinator/engine/engine.h"
#include "model/checkpoint/checkpoint.h"

namespace millrace::testing {

// All that a request gave, for comparisons with ==. Floats are kept as they
// came; they are equal bit for bit where no NaN and no -0 is about.
struct Outcome {
  absl::Status status;  // of the request's end
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;  // of the tokens, when asked for
  std::vector<uint32_t> token_crcs;
  std::vector<std::vector<std::pair<int32_t, float>>> tops;
  std::vector<float> scores;  // of the prompt, when asked for
  std::vector<uint32_t> score_crcs;

  bool operator==(const Outcome& other) const = default;
};

// Collects the outcome of one request. The engine's thread fills it.
class OutcomeObserver final : public coordinator::RequestObserver {
 public:
  // Blocks until the request has ended.
  Outcome Wait() ABSL_LOCKS_EXCLUDED(mutex_);

  void OnPromptScore(const coordinator::ScoreEvent& event) override;
  void OnToken(const coordinator::TokenEvent& event) override;
  void OnFinish(coordinator::FinishReason reason) override;
  void OnError(const absl::Status& error) override;

 private:
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void Keep(const transport::TopTokens& top)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar ended_changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Outcome outcome_ ABSL_GUARDED_BY(mutex_);
};

// Submits and waits.
Outcome RunToEnd(coordinator::Engine& engine,
                 coordinator::GenerateRequest request);

// Loads and starts all stages in this process. `sequences`: worst cases that
// the KV pools hold. `tap` outlives the pipeline.
absl::StatusOr<std::unique_ptr<cli::LocalPipeline>> StartPipeline(
    const model::Checkpoint& checkpoint, cli::ComputeOptions compute,
    int64_t sequences, worker::StageTap* tap = nullptr);

}  // namespace millrace::testing
