#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stage-worker/layers/step_context.h"
#include "stage-worker/runtime/sequences.h"
#include "stage-worker/runtime/stage_config.h"
#include "stage-worker/runtime/stage_runner.h"
#include "stage-worker/runtime/weights.h"
#include "stage-worker/sampling/sampler.h"
#include "stage-worker/sampling/token_history.h"
#include "transport/frame.h"

namespace millrace::worker {

// What the last stage does after its layers: final norm, logits of the rows
// that want something, sampling, scores. Step thread. Memory is taken at
// construction.
class Head {
 public:
  // `weights`, `kernels`, `tap` (nullable) and `histories` outlive it; the last
  // is scratch of model::TokenHistoriesBytes.
  Head(const Weights& weights, const StageConfig& config,
       const kernels::KernelTable& kernels, int64_t logit_rows, StageTap* tap,
       int32_t* histories);

  // Starts and ends the token histories of sequences with penalties.
  void Apply(const std::vector<transport::SequenceOp>& ops);
  // Fills out.results, one per row that wants something or has failed, in the
  // order of rows.
  void Run(StepContext& step, const transport::Frame& in,
           const Sequences& sequences, transport::Frame& out);
  void Reset();

 private:
  // A row whose logits are needed, and where its result goes.
  struct Wanted {
    int32_t row = 0;
    int32_t result = 0;
  };
  void ObserveTokens(const transport::Frame& in);
  void Collect(const StepContext& step, const transport::Frame& in,
               transport::Frame& out);
  // Logits and results of wanted_[begin, end), at most logit_rows_.
  void RunBatch(StepContext& step, const transport::Frame& in,
                const Sequences& sequences, int64_t begin, int64_t end,
                transport::Frame& out);
  void FillResult(const transport::Row& row,
                  const transport::OpenSequence& opened, const float* logits,
                  Sampler& sampler, transport::Result& result);

  const Weights& weights_;
  const kernels::SamplingKernels& kernels_;
  const int64_t vocab_size_;
  const int64_t context_;
  const int64_t logit_rows_;
  StageTap* const tap_;
  int32_t* const history_memory_;  // [slots, numbers of a history]
  std::vector<Wanted> wanted_;
  std::vector<int32_t> wanted_rows_;  // rows of wanted_, for the product
  std::vector<Sampler> samplers_;     // [kSampledTogether]
  std::vector<std::optional<TokenHistory>> histories_;  // [slots]
};

}  // namespace millrace::worker
