#include "tests/support/pipeline_run.h"

#include <utility>

#include "base/log.h"
#include "base/status_macros.h"

namespace millrace::testing {

void OutcomeObserver::Keep(const transport::TopTokens& top) {
  std::vector<std::pair<int32_t, float>>& kept = outcome_.tops.emplace_back();
  for (const transport::TopToken& entry : top) {
    kept.emplace_back(entry.token, entry.logprob);
  }
}

void OutcomeObserver::OnPromptScore(const coordinator::ScoreEvent& event) {
  MutexLock lock(mutex_);
  outcome_.scores.push_back(event.logprob);
  outcome_.score_crcs.push_back(event.logits_crc);
  Keep(event.top);
}

void OutcomeObserver::OnToken(const coordinator::TokenEvent& event) {
  MutexLock lock(mutex_);
  outcome_.tokens.push_back(event.token);
  outcome_.logprobs.push_back(event.logprob);
  outcome_.token_crcs.push_back(event.logits_crc);
  Keep(event.top);
}

void OutcomeObserver::OnFinish(coordinator::FinishReason reason) {
  (void)reason;
  End(absl::OkStatus());
}

void OutcomeObserver::OnError(const absl::Status& error) { End(error); }

void OutcomeObserver::End(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    outcome_.status = status;
    ended_ = true;
  }
  ended_changed_.NotifyAll();
}

Outcome OutcomeObserver::Wait() {
  MutexLock lock(mutex_);
  while (!ended_) {
    ended_changed_.Wait(mutex_);
  }
  return outcome_;
}

Outcome RunToEnd(coordinator::Engine& engine,
                 coordinator::GenerateRequest request) {
  const auto observer = std::make_shared<OutcomeObserver>();
  const auto id = engine.Submit(std::move(request), observer);
  if (!id.ok()) {
    Outcome refused;
    refused.status = id.status();
    return refused;
  }
  return observer->Wait();
}

absl::StatusOr<std::unique_ptr<cli::LocalPipeline>> StartPipeline(
    const model::Checkpoint& checkpoint, cli::ComputeOptions compute,
    int64_t sequences, worker::StageTap* tap) {
  // State changes of the pipeline are of no interest to a test.
  SetLogLevel(LogLevel::kWarning);
  MILLRACE_RETURN_IF_ERROR(cli::FitToModel(checkpoint.spec(), compute));
  cli::LocalPipeline::Options options;
  options.compute = std::move(compute);
  options.sequences = sequences;
  options.tap = tap;
  return cli::LocalPipeline::Start(checkpoint, std::move(options));
}

}  // namespace millrace::testing
