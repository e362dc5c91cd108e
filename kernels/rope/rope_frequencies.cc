#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/rope/rope.h"

// Rotary tables in double: libm differs between libraries, so ln, exp, sin and
// cos are our own, of correctly rounded steps alone. Errors: 2e-16 for angles
// up to 2^24, 2e-15 for frequencies.
namespace millrace::kernels {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;

// x normal, > 0.
double Ln(double x) {
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdu;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  // m = x / 2^k lies in [sqrt(1/2), sqrt(2)).
  const int64_t k = static_cast<int64_t>(bits - kSqrtHalf) >> 52;
  const double m =
      std::bit_cast<double>(bits - (static_cast<uint64_t>(k) << 52));
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 1.0 / 25.0;
  for (int j = 11; j >= 0; --j) {
    p = std::fma(p, z, 1.0 / static_cast<double>(2 * j + 1));
  }
  return std::fma(static_cast<double>(k), 0x1.62e42fefa39efp-1, 2.0 * s * p);
}

// |x| < 700.
double Exp(double x) {
  const double n = std::rint(x * 0x1.71547652b82fep+0);
  double r = std::fma(n, -0x1.62e42fefa39efp-1, x);
  r = std::fma(n, -0x1.abc9e3b39803fp-56, r);
  constexpr double kFactorials[] = {
      1.0,       1.0,        2.0,         6.0,         24.0,
      120.0,     720.0,      5040.0,      40320.0,     362880.0,
      3628800.0, 39916800.0, 479001600.0, 6227020800.0};
  double p = 1.0 / kFactorials[13];
  for (int j = 12; j >= 0; --j) {
    p = std::fma(p, r, 1.0 / kFactorials[j]);
  }
  const auto exponent = static_cast<uint64_t>(static_cast<int64_t>(n)) << 52;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(p) + exponent);
}

// {sin t, cos t} for 0 <= t < 2^24 or so.
std::pair<double, double> SinCos(double t) {
  const double n = std::rint(t * 0x1.45f306dc9c883p-1);
  double q = std::fma(-n, 0x1.921fb54442d18p+0, t);
  q = std::fma(-n, 0x1.1a62633145c07p-54, q);
  const double z = q * q;
  // 1/j! with the sign of the series, from the highest term down.
  constexpr double kSin[] = {-1.0 / 1307674368000.0,
                             1.0 / 6227020800.0,
                             -1.0 / 39916800.0,
                             1.0 / 362880.0,
                             -1.0 / 5040.0,
                             1.0 / 120.0,
                             -1.0 / 6.0,
                             1.0};
  constexpr double kCos[] = {1.0 / 20922789888000.0,
                             -1.0 / 87178291200.0,
                             1.0 / 479001600.0,
                             -1.0 / 3628800.0,
                             1.0 / 40320.0,
                             -1.0 / 720.0,
                             1.0 / 24.0,
                             -1.0 / 2.0,
                             1.0};
  double sine = kSin[0];
  for (int j = 1; j < 8; ++j) {
    sine = std::fma(sine, z, kSin[j]);
  }
  sine *= q;
  double cosine = kCos[0];
  for (int j = 1; j < 9; ++j) {
    cosine = std::fma(cosine, z, kCos[j]);
  }
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

// The base of `dynamic` scaling for a prompt of this length.
double DynamicTheta(const RopeParams& params, int64_t prompt_tokens) {
  const auto r = static_cast<double>(params.rotary_dims);
  const auto length = static_cast<double>(prompt_tokens);
  if (params.rotary_dims <= 2 || length <= params.original_context) {
    return params.theta;
  }
  const double stretch =
      params.factor * length / params.original_context - (params.factor - 1.0);
  return params.theta * Exp(r / (r - 2.0) * Ln(stretch));
}

double Llama3Frequency(const RopeParams& params, double f) {
  const double wavelength = 2.0 * kPi / f;
  const double context = params.original_context;
  if (wavelength < context / params.high_freq_factor) {
    return f;
  }
  if (wavelength > context / params.low_freq_factor) {
    return f / params.factor;
  }
  const double s = (context / wavelength - params.low_freq_factor) /
                   (params.high_freq_factor - params.low_freq_factor);
  return (1.0 - s) * f / params.factor + s * f;
}

// Indices between which YaRN fades from kept to divided frequencies.
struct YarnRamp {
  double low;
  double high;
};

YarnRamp MakeYarnRamp(const RopeParams& params) {
  const auto r = static_cast<double>(params.rotary_dims);
  const auto index_of = [&](double rotations) {
    return r * Ln(params.original_context / (2.0 * kPi * rotations)) /
           (2.0 * Ln(params.theta));
  };
  YarnRamp ramp{index_of(params.beta_fast), index_of(params.beta_slow)};
  if (params.truncate) {
    ramp = {std::floor(ramp.low), std::ceil(ramp.high)};
  }
  ramp.low = std::max(ramp.low, 0.0);
  ramp.high = std::min(ramp.high, r - 1.0);
  if (ramp.low == ramp.high) {
    ramp.high += 0.001;
  }
  return ramp;
}

double YarnFrequency(const RopeParams& params, const YarnRamp& ramp, int64_t i,
                     double f) {
  const double position =
      (static_cast<double>(i) - ramp.low) / (ramp.high - ramp.low);
  const double share = std::min(std::max(position, 0.0), 1.0);
  return f / params.factor * share + f * (1.0 - share);
}

}  // namespace

void RopeFrequencies(const RopeParams& params, int64_t prompt_tokens,
                     double* out) {
  const double theta = params.scaling == RopeScaling::kDynamic
                           ? DynamicTheta(params, prompt_tokens)
                           : params.theta;
  const double ln_theta = Ln(theta);
  const auto r = static_cast<double>(params.rotary_dims);
  YarnRamp ramp{0.0, 1.0};
  if (params.scaling == RopeScaling::kYarn) {
    ramp = MakeYarnRamp(params);
  }
  for (int64_t i = 0; i < params.rotary_dims / 2; ++i) {
    double f = Exp(-(static_cast<double>(2 * i) / r) * ln_theta);
    switch (params.scaling) {
      case RopeScaling::kNone:
      case RopeScaling::kDynamic:
        break;
      case RopeScaling::kLinear:
        f = f / params.factor;
        break;
      case RopeScaling::kLlama3:
        f = Llama3Frequency(params, f);
        break;
      case RopeScaling::kYarn:
        f = YarnFrequency(params, ramp, i, f);
        break;
    }
    if (params.divisors != nullptr) {
      f = f / static_cast<double>(params.divisors[i]);
    }
    out[i] = f;
  }
}

void RopeTableRow(const double* frequencies, int64_t num_frequencies,
                  double attention_factor, int64_t position, float* cos,
                  float* sin) {
  for (int64_t i = 0; i < num_frequencies; ++i) {
    const auto [sine, cosine] =
        SinCos(static_cast<double>(position) * frequencies[i]);
    sin[i] = static_cast<float>(sine * attention_factor);
    cos[i] = static_cast<float>(cosine * attention_factor);
  }
}

}  // namespace millrace::kernels
