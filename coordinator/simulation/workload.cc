#include "coordinator/simulation/workload.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace millrace::coordinator {
namespace {

// The distributions of the standard library differ between libraries; these do
// not.

// In (0, 1].
double DrawUnit(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
}

double DrawNormal(std::mt19937_64& random) {
  const double radius = std::sqrt(-2 * std::log(DrawUnit(random)));
  return radius * std::cos(2 * std::numbers::pi * DrawUnit(random));
}

// Gamma of this shape and scale 1. Marsaglia and Tsang, "A simple method for
// generating gamma variables" (2000): d = shape - 1/3, c = 1 / sqrt(9 d); below
// a shape of 1 that of shape + 1 times u^(1/shape).
double DrawGamma(std::mt19937_64& random, double shape) {
  if (shape < 1) {
    return DrawGamma(random, shape + 1) * std::pow(DrawUnit(random), 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = DrawNormal(random);
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(DrawUnit(random)) <
                     0.5 * x * x + d - d * v + d * std::log(v)) {
      return d * v;
    }
  }
}

}  // namespace

int64_t TokenLength::Least() const {
  return std::max<int64_t>(
      1, std::llround(std::floor(static_cast<double>(tokens) * (1 - spread))));
}

int64_t TokenLength::Most() const {
  return std::max<int64_t>(
      1, std::llround(std::ceil(static_cast<double>(tokens) * (1 + spread))));
}

RequestSource::RequestSource(const Workload& workload)
    : workload_(workload),
      gaps_(workload.seed),
      lengths_(~workload.seed),
      left_(workload.requests) {
  const auto& trace = workload.arrivals.trace;
  if (!trace.empty()) {
    left_ = std::min(left_, static_cast<int64_t>(trace.size()));
  }
}

std::optional<TraceEntry> RequestSource::Next() {
  if (left_ == 0) {
    return std::nullopt;
  }
  --left_;
  const Arrivals& arrivals = workload_.arrivals;
  if (!arrivals.trace.empty()) {
    return arrivals.trace[next_of_trace_++];
  }
  TraceEntry entry;
  entry.at = absl::Seconds(at_s_);
  if (arrivals.rate > 0) {
    at_s_ += DrawGap() / arrivals.rate;
  }
  entry.input_tokens = DrawLength(workload_.input);
  entry.output_tokens = DrawLength(workload_.output);
  return entry;
}

int64_t RequestSource::DrawLength(const TokenLength& length) {
  const int64_t least = length.Least();
  const auto choices = static_cast<uint64_t>(length.Most() - least + 1);
  return choices == 1 ? least
                      : least + static_cast<int64_t>(lengths_() % choices);
}

double RequestSource::DrawGap() {
  const double shape = workload_.arrivals.burstiness;
  return shape == 1 ? -std::log(DrawUnit(gaps_))
                    : DrawGamma(gaps_, shape) / shape;
}

}  // namespace millrace::coordinator
