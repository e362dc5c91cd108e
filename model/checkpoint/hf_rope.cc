#include "model/checkpoint/hf_rope.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/checkpoint/decoder_config.h"

namespace millrace::model {
namespace {

// Formulas and defaults: transformers, modeling_rope_utils.
constexpr double kThetaMin = 1.001;  // yarn divides by its logarithm
constexpr double kThetaMax = 1e15;
constexpr double kFactorMax = 1e6;
constexpr double kBetaMin = 1e-3;
constexpr double kBetaMax = 1e6;
constexpr double kContextMin = 1;

double YarnMagnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

absl::Status ReadLlama3(const JsonObject& rules, RopeSpec& out) {
  out.scaling = RopeScalingKind::kLlama3;
  MILLRACE_ASSIGN_OR_RETURN(out.factor, rules.Number("factor", 1, kFactorMax));
  MILLRACE_ASSIGN_OR_RETURN(
      out.low_freq_factor, rules.Number("low_freq_factor", kBetaMin, kBetaMax));
  MILLRACE_ASSIGN_OR_RETURN(
      out.high_freq_factor,
      rules.Number("high_freq_factor", kBetaMin, kBetaMax));
  if (out.high_freq_factor <= out.low_freq_factor) {
    return rules.ErrorAt("high_freq_factor",
                         "must be larger than low_freq_factor");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      out.original_context,
      rules.Number("original_max_position_embeddings", kContextMin,
                   static_cast<double>(kContextMax)));
  return absl::OkStatus();
}

absl::Status ReadYarn(const JsonObject& rules, double max_position,
                      RopeSpec& out) {
  out.scaling = RopeScalingKind::kYarn;
  MILLRACE_ASSIGN_OR_RETURN(
      out.original_context,
      rules.NumberOr("original_max_position_embeddings", kContextMin,
                     static_cast<double>(kContextMax), max_position));
  MILLRACE_ASSIGN_OR_RETURN(
      out.factor,
      rules.NumberOr("factor", 1, kFactorMax,
                     std::max(1.0, max_position / out.original_context)));
  MILLRACE_ASSIGN_OR_RETURN(
      out.beta_fast, rules.NumberOr("beta_fast", kBetaMin, kBetaMax, 32));
  MILLRACE_ASSIGN_OR_RETURN(out.beta_slow,
                            rules.NumberOr("beta_slow", kBetaMin, kBetaMax, 1));
  MILLRACE_ASSIGN_OR_RETURN(out.truncate, rules.BoolOr("truncate", true));
  MILLRACE_ASSIGN_OR_RETURN(const double mscale,
                            rules.NumberOr("mscale", 0, kFactorMax, 0));
  MILLRACE_ASSIGN_OR_RETURN(const double mscale_all,
                            rules.NumberOr("mscale_all_dim", 0, kFactorMax, 0));
  const double magnitude = mscale != 0 && mscale_all != 0
                               ? YarnMagnitude(out.factor, mscale) /
                                     YarnMagnitude(out.factor, mscale_all)
                               : YarnMagnitude(out.factor, 1);
  MILLRACE_ASSIGN_OR_RETURN(
      out.attention_factor,
      rules.NumberOr("attention_factor", 1e-6, kFactorMax, magnitude));
  return absl::OkStatus();
}

// The scaling rule of `rules`, which may also hold none.
absl::Status ReadScaling(const JsonObject& rules, int64_t max_position,
                         HfRope& rope) {
  const char* key = rules.Has("rope_type") ? "rope_type" : "type";
  MILLRACE_ASSIGN_OR_RETURN(const std::string kind,
                            rules.StringOr(key, "default"));
  RopeSpec& spec = rope.spec;
  const double length = static_cast<double>(max_position);
  if (kind == "default" || kind == "none") {
    return absl::OkStatus();
  }
  if (kind == "linear") {
    spec.scaling = RopeScalingKind::kLinear;
    MILLRACE_ASSIGN_OR_RETURN(spec.factor,
                              rules.Number("factor", 1, kFactorMax));
    return absl::OkStatus();
  }
  if (kind == "dynamic") {
    spec.scaling = RopeScalingKind::kDynamic;
    MILLRACE_ASSIGN_OR_RETURN(spec.factor,
                              rules.Number("factor", 1, kFactorMax));
    spec.original_context = length;
    rope.context_length = static_cast<int64_t>(spec.factor * length);
    return absl::OkStatus();
  }
  if (kind == "llama3") {
    return ReadLlama3(rules, spec);
  }
  if (kind == "yarn") {
    MILLRACE_RETURN_IF_ERROR(ReadYarn(rules, length, spec));
    // Some configurations keep the trained length as
    // max_position_embeddings, others the scaled one.
    rope.context_length =
        std::max(max_position,
                 static_cast<int64_t>(spec.factor * spec.original_context));
    return absl::OkStatus();
  }
  return rules.ErrorAt(
      key, absl::StrCat("the rule '", Printable(kind),
                        "' is not supported; "
                        "known are default, linear, dynamic, llama3, yarn"));
}

}  // namespace

absl::StatusOr<HfRope> ReadHfRope(const JsonObject& config, int64_t head_dim,
                                  int64_t max_position) {
  HfRope rope;
  rope.context_length = max_position;
  MILLRACE_ASSIGN_OR_RETURN(const bool interleaved,
                            config.BoolOr("rope_interleaved", false));
  if (interleaved) {
    return config.ErrorAt("rope_interleaved", "true is not supported");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      rope.spec.theta,
      config.NumberOr("rope_theta", kThetaMin, kThetaMax, 10000));
  MILLRACE_ASSIGN_OR_RETURN(
      double partial, config.NumberOr("partial_rotary_factor", 1e-3, 1, 1));
  const char* key =
      config.Has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (config.Has(key)) {
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject rules, config.Object(key));
    MILLRACE_ASSIGN_OR_RETURN(
        rope.spec.theta,
        rules.NumberOr("rope_theta", kThetaMin, kThetaMax, rope.spec.theta));
    MILLRACE_ASSIGN_OR_RETURN(
        partial, rules.NumberOr("partial_rotary_factor", 1e-3, 1, partial));
    MILLRACE_RETURN_IF_ERROR(ReadScaling(rules, max_position, rope));
  }
  rope.spec.rotary_dims =
      static_cast<int64_t>(static_cast<double>(head_dim) * partial);
  if (rope.spec.rotary_dims < 2 || rope.spec.rotary_dims % 2 != 0) {
    return config.ErrorAt("head_dim",
                          absl::StrCat("leaves ", rope.spec.rotary_dims,
                                       " dimensions to rotate; an even number "
                                       "is needed"));
  }
  return rope;
}

}  // namespace millrace::model
