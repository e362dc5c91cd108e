#include "stage-worker/runtime/head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <variant>

#include "base/crc32c.h"
#include "model/spec/stage_memory.h"
#include "stage-worker/layers/layer.h"
#include "stage-worker/layers/products.h"

namespace millrace::worker {
namespace {

constexpr uint8_t kWantsLogits =
    transport::kRowWantsToken | transport::kRowWantsLogprob |
    transport::kRowWantsCrc | transport::kRowWantsScore;

// What leaves the data path writes every NaN as 0x7fc00000: payloads and signs
// differ between instruction sets (design of numerics).
uint32_t LogitsCrc(const kernels::SamplingKernels& kernels, const float* logits,
                   int64_t count) {
  constexpr uint32_t kNan = 0x7fc00000;
  if (!std::isnan(kernels.row_max(logits, count))) {
    return Crc32c(0, logits, static_cast<size_t>(count) * sizeof(float));
  }
  uint32_t crc = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(logits[i])) {
      crc = Crc32c(crc, &kNan, sizeof(kNan));
    } else {
      crc = Crc32c(crc, &logits[i], sizeof(float));
    }
  }
  return crc;
}

}  // namespace

Head::Head(const Weights& weights, const StageConfig& config,
           const kernels::KernelTable& kernels, int64_t logit_rows,
           StageTap* tap, int32_t* histories)
    : weights_(weights),
      kernels_(kernels.sampling),
      vocab_size_(weights.spec().vocab_size),
      context_(config.context),
      logit_rows_(logit_rows),
      tap_(tap),
      history_memory_(histories),
      histories_(static_cast<size_t>(config.slots)) {
  wanted_.reserve(static_cast<size_t>(config.rows_max));
  wanted_rows_.reserve(static_cast<size_t>(config.rows_max));
  for (int64_t i = 0; i < model::kSampledTogether; ++i) {
    samplers_.emplace_back(kernels.sampling, vocab_size_);
  }
}

void Head::Apply(const std::vector<transport::SequenceOp>& ops) {
  const int64_t numbers =
      model::TokenHistorySizeOf(vocab_size_, context_).numbers();
  for (const transport::SequenceOp& op : ops) {
    if (const auto* open = std::get_if<transport::OpenSequence>(&op)) {
      if (Penalizes(open->sampling)) {
        histories_[open->slot].emplace(
            history_memory_ + open->slot * numbers, vocab_size_,
            TokenHistory::Sequence{
                .prompt_tokens = open->prompt_tokens,
                .tokens_max = std::min<int64_t>(open->tokens_max, context_)});
      }
    } else {
      histories_[std::get<transport::CloseSequence>(op).slot].reset();
    }
  }
}

void Head::Reset() {
  for (std::optional<TokenHistory>& history : histories_) {
    history.reset();
  }
}

void Head::ObserveTokens(const transport::Frame& in) {
  for (const transport::Row& row : in.rows) {
    if (histories_[row.slot].has_value()) {
      histories_[row.slot]->Observe(row.position, row.token);
    }
  }
}

void Head::Collect(const StepContext& step, const transport::Frame& in,
                   transport::Frame& out) {
  wanted_.clear();
  wanted_rows_.clear();
  for (size_t i = 0; i < in.rows.size(); ++i) {
    const transport::Row& row = in.rows[i];
    const transport::RowFailure failure = step.rows[i].failure;
    const bool failed = failure != transport::RowFailure::kNone;
    if (!failed && (row.flags & kWantsLogits) == 0) {
      continue;
    }
    transport::Result& result = out.results.emplace_back();
    result.slot = row.slot;
    result.position = row.position;
    result.failure = failure;
    if (!failed) {
      wanted_.push_back({static_cast<int32_t>(i),
                         static_cast<int32_t>(out.results.size() - 1)});
      wanted_rows_.push_back(static_cast<int32_t>(i));
    }
  }
}

void Head::FillResult(const transport::Row& row,
                      const transport::OpenSequence& opened,
                      const float* logits, Sampler& sampler,
                      transport::Result& result) {
  const absl::Span<const float> span(logits, static_cast<size_t>(vocab_size_));
  if ((row.flags & transport::kRowWantsCrc) != 0) {
    result.logits_crc = LogitsCrc(kernels_, logits, vocab_size_);
  }
  if ((row.flags & transport::kRowWantsScore) != 0) {
    sampler.Score(span, row.target, opened.top_logprobs, result);
    return;
  }
  if ((row.flags & transport::kRowWantsToken) == 0) {
    return;
  }
  Sampler::Request request;
  request.logits = span;
  request.position = int64_t{row.position} + 1;
  request.options = &opened.sampling;
  request.history =
      histories_[row.slot].has_value() ? &*histories_[row.slot] : nullptr;
  request.wants_logprob = (row.flags & transport::kRowWantsLogprob) != 0;
  request.num_top = opened.top_logprobs;
  sampler.Sample(request, result);
}

void Head::RunBatch(StepContext& step, const transport::Frame& in,
                    const Sequences& sequences, int64_t begin, int64_t end,
                    transport::Frame& out) {
  const Product head[] = {
      {&weights_.head(), nullptr, step.buffers.logits, vocab_size_}};
  Multiply(step,
           {step.buffers.normed, step.sizes.hidden, wanted_rows_.data() + begin,
            end - begin},
           head, step.compute, step.next_weights);
  if (step.is_cancelled()) {
    return;
  }
  const int64_t together = std::min(end - begin, model::kSampledTogether);
  step.pool->Run(together, [&](int64_t sampler, int) {
    for (int64_t i = begin + sampler; i < end; i += together) {
      const Wanted& wanted = wanted_[static_cast<size_t>(i)];
      const transport::Row& row = in.rows[static_cast<size_t>(wanted.row)];
      FillResult(row, sequences.opened(row.slot),
                 step.buffers.logits + (i - begin) * vocab_size_,
                 samplers_[static_cast<size_t>(sampler)],
                 out.results[static_cast<size_t>(wanted.result)]);
    }
  });
  if (tap_ != nullptr) {
    for (int64_t i = begin; i < end; ++i) {
      tap_->OnLogits(
          in.rows[static_cast<size_t>(wanted_[static_cast<size_t>(i)].row)],
          step.buffers.logits + (i - begin) * vocab_size_, vocab_size_);
    }
  }
}

void Head::Run(StepContext& step, const transport::Frame& in,
               const Sequences& sequences, transport::Frame& out) {
  // A frame holds at most one row of a sequence that wants a token, and it is
  // the last: every token that its penalties look at has been seen.
  ObserveTokens(in);
  Collect(step, in, out);
  if (wanted_.empty()) {
    return;
  }
  NormRows(step, weights_.final_norm(), step.buffers.hidden, step.sizes.hidden,
           step.buffers.normed);
  const auto count = static_cast<int64_t>(wanted_.size());
  for (int64_t begin = 0; begin < count; begin += logit_rows_) {
    RunBatch(step, in, sequences, begin, std::min(count, begin + logit_rows_),
             out);
  }
}

}  // namespace millrace::worker
