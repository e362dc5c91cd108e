#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/sampling/sampling.h"
#include "stage-worker/sampling/candidates.h"
#include "stage-worker/sampling/token_history.h"
#include "transport/frame.h"

namespace millrace::worker {

// Whether a sequence with these options needs a TokenHistory that has seen all
// its tokens; else Sample does not look at it.
bool Penalizes(const transport::SamplingOptions& options);

// Chooses tokens and scores them. Order of what changes a row, and every sum:
// kernels/README.md, "Sampling". A result depends on its arguments alone. One
// thread at a time: the head has model::kSampledTogether, each run by a thread
// of the stage's pool. The constructor takes all memory,
// model::SamplerBytes(vocab_size).
class Sampler {
 public:
  // `vocab_size` >= 1.
  Sampler(const kernels::SamplingKernels& kernels, int64_t vocab_size);

  struct Request {
    absl::Span<const float> logits;  // [vocab_size] of one row
    // Position of the token to draw: that of the row, plus one.
    int64_t position = 0;
    // Values as the coordinator admits them; tokens in the bias < vocab_size.
    const transport::SamplingOptions* options = nullptr;
    const TokenHistory* history = nullptr;  // may be null where not needed
    bool wants_logprob = false;
    int32_t num_top = 0;  // 0..kTopLogprobsMax, looked at with wants_logprob
  };
  // Sets token of `result`, and with wants_logprob its logprob and top list:
  // the model's own, before bias, penalties and temperature, by logprob
  // falling, then id rising; tokens of probability 0 are not listed. A row with
  // NaN or without a finite maximum, also behind bias and penalties, sets
  // failure to kLogitsNotFinite and nothing else. A temperature so small that
  // the largest z overflows counts as 0, which it tends to.
  void Sample(const Request& request, transport::Result& result);

  // Sets logprob of `result` to that of `target`, 0 <= target < vocab_size, and
  // its top list. Failure as Sample.
  void Score(absl::Span<const float> logits, int32_t target, int32_t num_top,
             transport::Result& result);

 private:
  // z_ = logits with bias and penalties.
  void Adjust(const Request& request);
  // The token from z_; -1 when z_ has no finite maximum.
  int32_t Draw(const Request& request);
  // Sets z_ of all but the candidates to -infinity, which is weight 0.
  void KeepCandidates();
  // Drops what the filters drop; candidates_ and weights_ are scratch.
  void Filter(const transport::SamplingOptions& options, float max);
  // weights_ = exp(z_ - max), block_sums_; returns S.
  double Weigh(float max);
  // The id that u in [0, 1) falls on.
  [[nodiscard]] int32_t Locate(double u, double sum) const;
  // logprob of `token` and the top list; max is that of the row.
  void Report(absl::Span<const float> logits, float max, int32_t token,
              int32_t num_top, transport::Result& result);

  const kernels::SamplingKernels kernels_;
  std::vector<float> z_;
  std::vector<float> weights_;
  std::vector<float> block_sums_;
  std::vector<Candidate> candidates_;
};

}  // namespace millrace::worker
