#include "model/checkpoint/gguf_config.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/checkpoint/tensor_names.h"

namespace millrace::model {
namespace {

struct Architecture {
  const char* name;
  const char* family;
  // The converter interleaves the rows of q and k, and so the rotation.
  bool interleaved;
};

constexpr Architecture kArchitectures[] = {
    {"llama", "llama", true},         {"smollm3", "smollm3", true},
    {"qwen2", "qwen2", false},        {"qwen3", "qwen3", false},
    {"qwen3moe", "qwen3_moe", false},
};

constexpr double kThetaMin = 1.001;
constexpr double kThetaMax = 1e15;
constexpr double kFactorMax = 1e6;

class GgufConfigReader {
 public:
  GgufConfigReader(const GgufFile& file, const StoredTensors& tensors)
      : file_(file), tensors_(tensors) {}

  absl::StatusOr<DecoderConfig> Read();

 private:
  [[nodiscard]] std::string Key(absl::string_view name) const {
    return absl::StrCat(prefix_, ".", name);
  }
  absl::Status ReadArchitecture();
  absl::Status ReadSizes();
  absl::Status ReadVocabSize();
  absl::Status ReadHeads();
  absl::Status ReadRope();
  absl::Status ReadScaling();
  absl::Status ReadYarn();
  absl::Status ReadMoe();
  void SetLayers();

  const GgufFile& file_;
  const StoredTensors& tensors_;
  std::string prefix_;
  bool interleaved_ = false;
  DecoderConfig out_;
};

absl::Status GgufConfigReader::ReadArchitecture() {
  constexpr char kKey[] = "general.architecture";
  MILLRACE_ASSIGN_OR_RETURN(prefix_, file_.String(kKey));
  for (const Architecture& known : kArchitectures) {
    if (prefix_ == known.name) {
      out_.family = known.family;
      interleaved_ = known.interleaved;
      return absl::OkStatus();
    }
  }
  std::string names;
  for (const Architecture& known : kArchitectures) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", known.name);
  }
  return WithHint(
      file_.ErrorAt(kKey, absl::StrCat("the architecture '", Printable(prefix_),
                                       "' is not supported")),
      absl::StrCat("supported are ", names));
}

absl::Status GgufConfigReader::ReadVocabSize() {
  const std::string name = TensorName(NameStyle::kGguf, GlobalPart::kEmbedding);
  const StoredTensor* embedding = tensors_.Find(name);
  // A missing or misshapen embedding is reported by whoever takes it.
  out_.vocab_size = embedding != nullptr && embedding->shape.size() == 2
                        ? embedding->shape[0]
                        : 1;
  if (out_.vocab_size > kVocabMax) {
    return file_.ErrorAt(
        name, absl::StrCat("has ", out_.vocab_size, " rows, more than the ",
                           kVocabMax, " allowed"));
  }
  return absl::OkStatus();
}

absl::Status GgufConfigReader::ReadSizes() {
  MILLRACE_ASSIGN_OR_RETURN(out_.num_layers,
                            file_.Integer(Key("block_count"), 1, kLayersMax));
  MILLRACE_ASSIGN_OR_RETURN(
      out_.context_length,
      file_.Integer(Key("context_length"), 1, kContextMax));
  MILLRACE_ASSIGN_OR_RETURN(
      out_.hidden_size, file_.Integer(Key("embedding_length"), 1, kHiddenMax));
  MILLRACE_ASSIGN_OR_RETURN(
      out_.intermediate_size,
      out_.family == "qwen3_moe"
          // No layer of it is dense.
          ? file_.IntegerOr(Key("feed_forward_length"), 0, kIntermediateMax, 0)
          : file_.Integer(Key("feed_forward_length"), 1, kIntermediateMax));
  MILLRACE_ASSIGN_OR_RETURN(
      out_.eps, file_.Number(Key("attention.layer_norm_rms_epsilon"), 0, 1));
  return ReadVocabSize();
}

absl::Status GgufConfigReader::ReadHeads() {
  const std::string heads = Key("attention.head_count");
  const std::string kv_heads = Key("attention.head_count_kv");
  MILLRACE_ASSIGN_OR_RETURN(out_.num_heads, file_.Integer(heads, 1, kHeadsMax));
  MILLRACE_ASSIGN_OR_RETURN(
      out_.num_kv_heads,
      file_.IntegerOr(kv_heads, 1, kHeadsMax, out_.num_heads));
  if (out_.num_heads % out_.num_kv_heads != 0) {
    return file_.ErrorAt(
        kv_heads,
        absl::StrCat("is ", out_.num_kv_heads, ", which does not divide the ",
                     Counted(out_.num_heads, "head")));
  }
  const std::string width = Key("attention.key_length");
  if (!file_.Has(width) && out_.hidden_size % out_.num_heads != 0) {
    return file_.ErrorAt(heads, absl::StrCat("is ", out_.num_heads,
                                             ", which does not divide the "
                                             "embedding length ",
                                             out_.hidden_size));
  }
  MILLRACE_ASSIGN_OR_RETURN(out_.head_dim,
                            file_.IntegerOr(width, 1, kHeadDimMax,
                                            out_.hidden_size / out_.num_heads));
  const std::string value_width = Key("attention.value_length");
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t value_dim,
      file_.IntegerOr(value_width, 1, kHeadDimMax, out_.head_dim));
  if (value_dim != out_.head_dim) {
    return file_.ErrorAt(
        value_width,
        absl::StrCat("is ", value_dim, ", other than the key length ",
                     out_.head_dim, ", which is not supported"));
  }
  return absl::OkStatus();
}

absl::Status GgufConfigReader::ReadRope() {
  RopeSpec& rope = out_.rope;
  rope.interleaved = interleaved_;
  const std::string dims = Key("rope.dimension_count");
  MILLRACE_ASSIGN_OR_RETURN(
      rope.rotary_dims, file_.IntegerOr(dims, 2, out_.head_dim, out_.head_dim));
  if (rope.rotary_dims % 2 != 0) {
    return file_.ErrorAt(
        dims, absl::StrCat("is ", rope.rotary_dims, ", must be even"));
  }
  MILLRACE_ASSIGN_OR_RETURN(
      rope.theta,
      file_.NumberOr(Key("rope.freq_base"), kThetaMin, kThetaMax, 10000));
  out_.rope_divisors = prefix_ == "llama";
  return ReadScaling();
}

absl::Status GgufConfigReader::ReadScaling() {
  RopeSpec& rope = out_.rope;
  const std::string type = Key("rope.scaling.type");
  MILLRACE_ASSIGN_OR_RETURN(const std::string kind,
                            file_.StringOr(type, "linear"));
  if (kind == "none") {
    return absl::OkStatus();
  }
  // Files from before the keys under rope.scaling.
  const std::string old_key = Key("rope.scale_linear");
  const std::string key = Key("rope.scaling.factor");
  const std::string& used = file_.Has(key) ? key : old_key;
  // 0 stands for "no scaling" in files in use.
  MILLRACE_ASSIGN_OR_RETURN(const double factor,
                            file_.NumberOr(used, 0, kFactorMax, 0));
  if (factor > 0 && factor < 1) {
    return file_.ErrorAt(used,
                         absl::StrCat("is ", factor, ", must be at least 1"));
  }
  rope.factor = factor == 0 ? 1 : factor;
  if (kind == "linear") {
    rope.scaling =
        rope.factor == 1 ? RopeScalingKind::kNone : RopeScalingKind::kLinear;
    return absl::OkStatus();
  }
  if (kind == "yarn") {
    return ReadYarn();
  }
  return file_.ErrorAt(type, absl::StrCat("the rule '", Printable(kind),
                                          "' is not supported; known are none, "
                                          "linear, yarn"));
}

// As llama.cpp computes it: bounds of the ramp are always rounded outwards.
absl::Status GgufConfigReader::ReadYarn() {
  RopeSpec& rope = out_.rope;
  rope.scaling = RopeScalingKind::kYarn;
  rope.truncate = true;
  MILLRACE_ASSIGN_OR_RETURN(
      rope.original_context,
      file_.NumberOr(Key("rope.scaling.original_context_length"), 1,
                     static_cast<double>(kContextMax),
                     static_cast<double>(out_.context_length)));
  MILLRACE_ASSIGN_OR_RETURN(
      rope.beta_fast,
      file_.NumberOr(Key("rope.scaling.yarn_beta_fast"), 1e-3, 1e6, 32));
  MILLRACE_ASSIGN_OR_RETURN(
      rope.beta_slow,
      file_.NumberOr(Key("rope.scaling.yarn_beta_slow"), 1e-3, 1e6, 1));
  const std::string extrapolation = Key("rope.scaling.yarn_ext_factor");
  MILLRACE_ASSIGN_OR_RETURN(
      const double ext_factor,
      file_.NumberOr(extrapolation, -kFactorMax, kFactorMax, 1));
  if (ext_factor >= 0 && ext_factor != 1) {
    return file_.ErrorAt(extrapolation, absl::StrCat("is ", ext_factor,
                                                     ", only 1 is supported"));
  }
  const std::string old_key = Key("rope.scaling.attn_factor");
  const std::string key = Key("rope.scaling.yarn_attn_factor");
  MILLRACE_ASSIGN_OR_RETURN(
      const double attention_factor,
      file_.NumberOr(file_.Has(key) ? key : old_key, 1e-6, kFactorMax, 1));
  rope.attention_factor = attention_factor * (1 + 0.1 * std::log(rope.factor));
  return absl::OkStatus();
}

absl::Status GgufConfigReader::ReadMoe() {
  MoeConfig moe;
  MILLRACE_ASSIGN_OR_RETURN(moe.num_experts,
                            file_.Integer(Key("expert_count"), 1, kExpertsMax));
  MILLRACE_ASSIGN_OR_RETURN(
      moe.experts_per_token,
      file_.Integer(Key("expert_used_count"), 1, moe.num_experts));
  MILLRACE_ASSIGN_OR_RETURN(
      moe.intermediate_size,
      file_.Integer(Key("expert_feed_forward_length"), 1, kIntermediateMax));
  // The format has no key for it; llama.cpp always does.
  moe.renormalise = true;
  moe.sparse.assign(static_cast<size_t>(out_.num_layers), true);
  out_.moe = std::move(moe);
  return absl::OkStatus();
}

void GgufConfigReader::SetLayers() {
  out_.windows.assign(static_cast<size_t>(out_.num_layers), 0);
  out_.rotated.assign(static_cast<size_t>(out_.num_layers), true);
  if (out_.family == "smollm3") {
    // The format has no key for it.
    for (size_t i = 3; i < out_.rotated.size(); i += 4) {
      out_.rotated[i] = false;
    }
  }
}

absl::StatusOr<DecoderConfig> GgufConfigReader::Read() {
  out_.style = NameStyle::kGguf;
  out_.source = file_.path();
  MILLRACE_RETURN_IF_ERROR(ReadArchitecture());
  // Mixtral and its kind are of architecture llama too.
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t experts,
      file_.IntegerOr(Key("expert_count"), 0, kExpertsMax, 0));
  if (experts > 0 && out_.family != "qwen3_moe") {
    return file_.ErrorAt(Key("expert_count"),
                         absl::StrCat("experts are not supported in the "
                                      "architecture ",
                                      prefix_));
  }
  MILLRACE_RETURN_IF_ERROR(ReadSizes());
  MILLRACE_RETURN_IF_ERROR(ReadHeads());
  MILLRACE_RETURN_IF_ERROR(ReadRope());
  SetLayers();
  out_.qkv_bias =
      out_.family == "qwen2" ? BiasRule::kRequired : BiasRule::kIfPresent;
  out_.output_bias = BiasRule::kIfPresent;
  out_.ffn_bias = BiasRule::kIfPresent;
  out_.qk_norm = out_.family == "qwen3" || out_.family == "qwen3_moe";
  if (out_.family == "qwen3_moe") {
    MILLRACE_RETURN_IF_ERROR(ReadMoe());
  }
  return std::move(out_);
}

}  // namespace

absl::StatusOr<DecoderConfig> ReadGgufConfig(const GgufFile& file,
                                             const StoredTensors& tensors) {
  return GgufConfigReader(file, tensors).Read();
}

}  // namespace millrace::model
