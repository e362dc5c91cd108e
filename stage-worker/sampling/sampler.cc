#include "stage-worker/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace millrace::worker {
namespace {

using transport::Result;
using transport::RowFailure;
using transport::SamplingOptions;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t NumBlocks(int64_t vocab_size) {
  return (vocab_size + kernels::kSamplingBlock - 1) / kernels::kSamplingBlock;
}

double Total(absl::Span<const float> block_sums) {
  double sum = 0;
  for (const float block_sum : block_sums) {
    sum += block_sum;
  }
  return sum;
}

int32_t FirstEqual(absl::Span<const float> x, float value) {
  return static_cast<int32_t>(std::find(x.begin(), x.end(), value) - x.begin());
}

// Puts the token into its place of a list of at most `num_top`. Tokens come
// with rising ids, so an equal log-probability stays behind.
void InsertTop(transport::TopToken token, int32_t num_top,
               transport::TopTokens& top) {
  if (static_cast<int32_t>(top.size()) == num_top) {
    top.pop_back();
  }
  const auto place = std::upper_bound(
      top.begin(), top.end(), token,
      [](const auto& a, const auto& b) { return a.logprob > b.logprob; });
  top.insert(place, token);
}

}  // namespace

bool Penalizes(const SamplingOptions& options) {
  return options.repetition_penalty != 1 || options.presence_penalty != 0 ||
         options.frequency_penalty != 0;
}

Sampler::Sampler(const kernels::SamplingKernels& kernels, int64_t vocab_size)
    : kernels_(kernels),
      z_(vocab_size),
      weights_(vocab_size),
      block_sums_(NumBlocks(vocab_size)) {
  // Resident from the start, as everything that a plan counts.
  candidates_.resize(vocab_size);
  candidates_.clear();
}

void Sampler::Sample(const Request& request, Result& result) {
  MILLRACE_CHECK(request.logits.size() == z_.size());
  const SamplingOptions& options = *request.options;
  const float max = kernels_.row_max(
      request.logits.data(), static_cast<int64_t>(request.logits.size()));
  if (!std::isfinite(max)) {
    result.failure = RowFailure::kLogitsNotFinite;
    return;
  }
  const bool adjusted = !options.logit_bias.empty() || Penalizes(options);
  int32_t token = -1;
  if (options.temperature == 0 && !adjusted) {
    token = FirstEqual(request.logits, max);
  } else {
    Adjust(request);
    token = Draw(request);
  }
  if (token < 0) {
    result.failure = RowFailure::kLogitsNotFinite;
    return;
  }
  result.token = token;
  if (request.wants_logprob) {
    Report(request.logits, max, token, request.num_top, result);
  }
}

void Sampler::Score(absl::Span<const float> logits, int32_t target,
                    int32_t num_top, Result& result) {
  MILLRACE_CHECK(logits.size() == z_.size() && target >= 0 &&
                 static_cast<size_t>(target) < z_.size());
  const float max =
      kernels_.row_max(logits.data(), static_cast<int64_t>(logits.size()));
  if (!std::isfinite(max)) {
    result.failure = RowFailure::kLogitsNotFinite;
    return;
  }
  Report(logits, max, target, num_top, result);
}

void Sampler::Adjust(const Request& request) {
  const SamplingOptions& options = *request.options;
  std::copy(request.logits.begin(), request.logits.end(), z_.begin());
  for (const transport::LogitBias& bias : options.logit_bias) {
    z_[bias.token] += bias.bias;
  }
  if (!Penalizes(options)) {
    return;
  }
  MILLRACE_CHECK(request.history != nullptr);
  const float r = options.repetition_penalty;
  for (int64_t i = 0; i < request.history->num_entries(); ++i) {
    const TokenHistory::Entry entry = request.history->entry(i);
    float x = z_[entry.token];
    x = x > 0 ? x / r : x * r;
    if (entry.answer_count > 0) {
      x = x - options.presence_penalty -
          options.frequency_penalty * static_cast<float>(entry.answer_count);
    }
    z_[entry.token] = x;
  }
}

int32_t Sampler::Draw(const Request& request) {
  const SamplingOptions& options = *request.options;
  const auto n = static_cast<int64_t>(z_.size());
  bool greedy = options.temperature == 0;
  if (!greedy) {
    kernels_.divide(z_.data(), options.temperature, n, z_.data());
  }
  float max = kernels_.row_max(z_.data(), n);
  if (!greedy && !std::isfinite(max)) {
    // Nearly always the temperature: where it is so small that z overflows, the
    // largest has all the weight.
    greedy = true;
    Adjust(request);
    max = kernels_.row_max(z_.data(), n);
  }
  if (!std::isfinite(max)) {
    return -1;
  }
  if (greedy) {
    return FirstEqual(z_, max);
  }
  Filter(options, max);
  const double sum = Weigh(max);
  return Locate(kernels::UniformDraw(options.seed,
                                     static_cast<uint64_t>(request.position),
                                     options.choice),
                sum);
}

void Sampler::Filter(const SamplingOptions& options, float max) {
  const bool cuts_k =
      options.top_k > 0 && static_cast<size_t>(options.top_k) < z_.size();
  if (cuts_k) {
    SelectTopK(z_, options.top_k, candidates_);
    KeepCandidates();
  }
  if (options.top_p < 1) {
    const double target = static_cast<double>(options.top_p) * Weigh(max);
    if (cuts_k) {
      CutTopP(weights_, target, candidates_);
    } else {
      SelectTopP(z_, weights_, max, target, candidates_);
    }
    KeepCandidates();
  }
  if (options.min_p > 0) {
    Weigh(max);
    for (size_t i = 0; i < z_.size(); ++i) {
      if (weights_[i] < options.min_p) {
        z_[i] = -kInfinity;
      }
    }
  }
}

void Sampler::KeepCandidates() {
  std::fill(z_.begin(), z_.end(), -kInfinity);
  for (const Candidate& candidate : candidates_) {
    z_[candidate.id] = candidate.z;
  }
}

double Sampler::Weigh(float max) {
  kernels_.exp_block_sums(z_.data(), max, static_cast<int64_t>(z_.size()),
                          weights_.data(), block_sums_.data());
  return Total(block_sums_);
}

int32_t Sampler::Locate(double u, double sum) const {
  const double target = u * sum;
  double before = 0;
  for (size_t block = 0; block < block_sums_.size(); ++block) {
    if (before + block_sums_[block] > target) {
      const size_t begin = block * kernels::kSamplingBlock;
      const size_t end =
          std::min(begin + kernels::kSamplingBlock, weights_.size());
      double running = before;
      for (size_t i = begin; i < end; ++i) {
        running += weights_[i];
        if (running > target) {
          return static_cast<int32_t>(i);
        }
      }
      break;
    }
    before += block_sums_[block];
  }
  // The sums of floats fell short of the target by their rounding.
  for (size_t i = weights_.size(); i-- > 0;) {
    if (weights_[i] > 0) {
      return static_cast<int32_t>(i);
    }
  }
  return -1;
}

void Sampler::Report(absl::Span<const float> logits, float max, int32_t token,
                     int32_t num_top, Result& result) {
  kernels_.exp_block_sums(logits.data(), max,
                          static_cast<int64_t>(logits.size()), nullptr,
                          block_sums_.data());
  const float log_sum = kernels::LogF32(static_cast<float>(Total(block_sums_)));
  result.logprob = (logits[token] - max) - log_sum;
  result.top.clear();
  if (num_top <= 0) {
    return;
  }
  float worst = -kInfinity;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logprob = (logits[i] - max) - log_sum;
    if (logprob > worst) {
      InsertTop({static_cast<int32_t>(i), logprob}, num_top, result.top);
      if (static_cast<int32_t>(result.top.size()) == num_top) {
        worst = result.top.back().logprob;
      }
    }
  }
}

}  // namespace millrace::worker
