#include "tests/unit/stage-worker/sampler_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "kernels/sampling/sampling.h"
#include "kernels/vector/elementary.h"

namespace millrace::worker {
namespace {

using kernels::scalar::Exp;
using kernels::scalar::Log;

// The maximum, a zero as +0, or NaN when there is one.
float Maximum(const std::vector<float>& x) {
  float max = -std::numeric_limits<float>::infinity();
  for (const float value : x) {
    if (std::isnan(value)) {
      return value;
    }
    max = std::max(max, value);
  }
  return max == 0 ? 0.0f : max;
}

// Sums of the blocks of 1024 ids, each in sixteen lanes.
std::vector<float> BlockSums(const std::vector<float>& w) {
  std::vector<float> sums;
  for (size_t begin = 0; begin < w.size(); begin += 1024) {
    std::vector<float> s(16, 0.0f);
    for (size_t i = begin; i < std::min(begin + 1024, w.size()); ++i) {
      s[i % 16] += w[i];
    }
    for (const size_t half : {8, 4, 2, 1}) {
      for (size_t l = 0; l < half; ++l) {
        s[l] += s[l + half];
      }
    }
    sums.push_back(s[0]);
  }
  return sums;
}

double Total(const std::vector<float>& w) {
  double total = 0;
  for (const float sum : BlockSums(w)) {
    total += sum;
  }
  return total;
}

std::vector<float> Weights(const std::vector<float>& x, float max) {
  std::vector<float> w;
  for (const float value : x) {
    w.push_back(Exp(value - max));
  }
  return w;
}

// Bias, repetition, presence and frequency of every token in turn.
std::vector<float> Adjusted(const ReferenceCase& c) {
  std::vector<float> x = c.logits;
  for (const transport::LogitBias& bias : c.options.logit_bias) {
    x[bias.token] += bias.bias;
  }
  const std::set<int32_t> seen(c.tokens.begin(), c.tokens.end());
  std::map<int32_t, int> counts;
  for (size_t i = c.prompt_tokens; i < c.tokens.size(); ++i) {
    ++counts[c.tokens[i]];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (seen.contains(id)) {
      const float r = c.options.repetition_penalty;
      x[i] = x[i] > 0 ? x[i] / r : x[i] * r;
    }
    const auto count = static_cast<float>(counts[id]);
    if (count > 0) {
      x[i] = (x[i] - c.options.presence_penalty) -
             c.options.frequency_penalty * count;
    }
  }
  return x;
}

// Whether each token survives top-k, top-p and min-p.
std::vector<bool> Survivors(const transport::SamplingOptions& options,
                            const std::vector<float>& z) {
  std::vector<float> w = Weights(z, Maximum(z));
  std::vector<int32_t> order(z.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return z[a] > z[b]; });
  if (options.top_k > 0 && order.size() > static_cast<size_t>(options.top_k)) {
    order.resize(options.top_k);
  }
  std::vector<bool> keeps(z.size(), false);
  const auto restrict_to_order = [&] {
    std::fill(keeps.begin(), keeps.end(), false);
    for (const int32_t id : order) {
      keeps[id] = true;
    }
    for (size_t i = 0; i < w.size(); ++i) {
      w[i] = keeps[i] ? w[i] : 0.0f;
    }
  };
  restrict_to_order();
  if (options.top_p < 1) {
    const double target = static_cast<double>(options.top_p) * Total(w);
    double running = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      running += w[order[i]];
      if (running >= target) {
        order.resize(i + 1);
      }
    }
    restrict_to_order();
  }
  for (size_t i = 0; i < w.size(); ++i) {
    keeps[i] = keeps[i] && w[i] >= options.min_p;
  }
  return keeps;
}

int32_t Draw(const ReferenceCase& c, const std::vector<float>& z) {
  const std::vector<bool> keeps = Survivors(c.options, z);
  std::vector<float> w = Weights(z, Maximum(z));
  for (size_t i = 0; i < w.size(); ++i) {
    w[i] = keeps[i] ? w[i] : 0.0f;
  }
  const double target =
      kernels::UniformDraw(c.options.seed, c.position, c.options.choice) *
      Total(w);
  const std::vector<float> sums = BlockSums(w);
  double running = 0;
  size_t block = 0;
  while (block < sums.size() && running + sums[block] <= target) {
    running += sums[block++];
  }
  const size_t end = std::min((block + 1) * 1024, w.size());
  for (size_t i = block * 1024; i < end; ++i) {
    running += w[i];
    if (running > target) {
      return static_cast<int32_t>(i);
    }
  }
  int32_t last = -1;
  for (size_t i = 0; i < w.size(); ++i) {
    last = w[i] > 0 ? static_cast<int32_t>(i) : last;
  }
  return last;
}

void AddLogProbabilities(const std::vector<float>& x, int32_t token,
                         int32_t num_top, transport::Result& result) {
  const float max = Maximum(x);
  const float log_sum = Log(static_cast<float>(Total(Weights(x, max))));
  for (size_t i = 0; i < x.size(); ++i) {
    const float logprob = (x[i] - max) - log_sum;
    if (static_cast<int32_t>(i) == token) {
      result.logprob = logprob;
    }
    if (logprob > -std::numeric_limits<float>::infinity()) {
      result.top.push_back({static_cast<int32_t>(i), logprob});
    }
  }
  std::stable_sort(
      result.top.begin(), result.top.end(),
      [](const auto& a, const auto& b) { return a.logprob > b.logprob; });
  result.top.resize(std::min(result.top.size(), static_cast<size_t>(num_top)));
}

transport::Result Failure() {
  transport::Result result;
  result.failure = transport::RowFailure::kLogitsNotFinite;
  return result;
}

}  // namespace

transport::Result ReferenceSample(const ReferenceCase& c) {
  if (!std::isfinite(Maximum(c.logits))) {
    return Failure();
  }
  const std::vector<float> x = Adjusted(c);
  if (!std::isfinite(Maximum(x))) {
    return Failure();
  }
  std::vector<float> z;
  for (const float value : x) {
    z.push_back(value / c.options.temperature);
  }
  transport::Result result;
  if (c.options.temperature == 0 || !std::isfinite(Maximum(z))) {
    result.token =
        static_cast<int32_t>(std::max_element(x.begin(), x.end()) - x.begin());
  } else {
    result.token = Draw(c, z);
  }
  AddLogProbabilities(c.logits, result.token, c.num_top, result);
  return result;
}

transport::Result ReferenceScore(const std::vector<float>& logits,
                                 int32_t target, int32_t num_top) {
  if (!std::isfinite(Maximum(logits))) {
    return Failure();
  }
  transport::Result result;
  AddLogProbabilities(logits, target, num_top, result);
  return result;
}

}  // namespace millrace::worker
