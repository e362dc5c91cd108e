#include "model/checkpoint/hf_quantisation.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"

namespace millrace::model {
namespace {

constexpr int64_t kBlock = 32;  // columns of a stored block
constexpr int64_t kFp8Block = 128;
// Longer than any row; only bounds the arithmetic.
constexpr int64_t kGroupMax = int64_t{1} << 22;
constexpr int64_t kMlxGroup = 64;  // MLX's defaults
constexpr int64_t kMlxBits = 4;

absl::Status Refuse(const JsonObject& at, absl::string_view key,
                    absl::string_view what) {
  return WithHint(at.ErrorAt(key, absl::StrCat(what, " are not supported")),
                  "use the checkpoint in BF16 or F16, in FP8 with blocks of "
                  "128 x 128, compressed-tensors INT4, MLX of 4 or 8 bits or "
                  "MXFP4, or a GGUF file");
}

absl::StatusOr<int64_t> ReadGroupSize(const JsonObject& at, int64_t otherwise) {
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t size, at.IntegerOr("group_size", 1, kGroupMax, otherwise));
  if (size % kBlock != 0) {
    return Refuse(at, "group_size",
                  absl::StrCat("groups of ", size, " columns, no multiple of ",
                               kBlock, ","));
  }
  return size;
}

// Whether `key` is the list [128, 128].
bool IsSquareOf128(const JsonObject& at, const char* key) {
  const Json* list = at.Find(key);
  if (list == nullptr || !list->is_array() || list->get_array().size() != 2) {
    return false;
  }
  for (const Json& side : list->get_array()) {
    if (!side.is_int64() || side.get_int64() != kFp8Block) {
      return false;
    }
  }
  return true;
}

absl::Status AddPatterns(const JsonObject& at, const char* key,
                         ModuleFilter& out) {
  const Json* list = at.Find(key);
  if (list == nullptr) {
    return absl::OkStatus();
  }
  const absl::Status wrong = at.ErrorAt(key, "must be a list of names");
  if (!list->is_array()) {
    return wrong;
  }
  for (const Json& pattern : list->get_array()) {
    if (!pattern.is_string()) {
      return wrong;
    }
    MILLRACE_RETURN_IF_ERROR(
        out.Add(std::string(pattern.get_string()), ObjectOf(wrong)));
  }
  return absl::OkStatus();
}

// Weights that are also rotated, sparse or the like: the bytes mean something
// else than the scheme says.
absl::Status RefuseExtras(const JsonObject& at) {
  for (const char* key : {"sparsity_config", "transform_config"}) {
    const Json* value = at.Find(key);
    if (value == nullptr ||
        (value->is_object() && value->get_object().empty())) {
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject extra, at.Object(key));
    MILLRACE_ASSIGN_OR_RETURN(const std::string format,
                              extra.StringOr("format", "unknown"));
    if (format != "dense") {
      return Refuse(at, key, "weights that are sparse or transformed");
    }
  }
  return absl::OkStatus();
}

// Activations are not quantised here, whatever the config says; scales that are
// part of a static scheme would be left out, so that is refused.
absl::Status CheckActivations(const JsonObject& at, const char* key,
                              absl::string_view what) {
  if (!at.Has(key)) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject activations, at.Object(key));
  MILLRACE_ASSIGN_OR_RETURN(const bool dynamic,
                            activations.BoolOr("dynamic", false));
  return dynamic ? absl::OkStatus()
                 : Refuse(at, key, absl::StrCat(what, " with static scales"));
}

absl::StatusOr<WeightScheme> ReadInt4(const JsonObject& weights,
                                      const std::string& strategy) {
  WeightScheme out;
  out.packing = Packing::kInt4;
  out.bits = 4;
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            weights.StringOr("type", "int"));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t bits,
                            weights.IntegerOr("num_bits", 1, 64, 8));
  if (type != "int" || bits != 4) {
    return Refuse(weights, "num_bits",
                  absl::StrCat("packed weights of ", bits, " bits, type '",
                               Printable(type), "',"));
  }
  MILLRACE_ASSIGN_OR_RETURN(const bool symmetric,
                            weights.BoolOr("symmetric", true));
  out.zero_points = !symmetric;
  const Json* order = weights.Find("actorder");
  const bool in_order =
      order == nullptr || (order->is_bool() && !order->get_bool()) ||
      (order->is_string() &&
       (order->get_string() == "weight" || order->get_string() == "static"));
  if (!in_order) {
    return Refuse(weights, "actorder", "columns in another order (g_idx)");
  }
  if (strategy == "channel") {
    out.group_size = 0;
    return out;
  }
  if (strategy != "group") {
    return Refuse(weights, "strategy",
                  absl::StrCat("packed weights with the strategy '",
                               Printable(strategy), "'"));
  }
  if (!weights.Has("group_size")) {
    return weights.ErrorAt("group_size", "is missing");
  }
  MILLRACE_ASSIGN_OR_RETURN(out.group_size, ReadGroupSize(weights, kBlock));
  return out;
}

// `bits` is called `num_bits` by compressed-tensors. Where `type` is given it
// must say that the codes are numbers of four bits, not integers.
absl::StatusOr<WeightScheme> ReadMxfp4(const JsonObject& weights,
                                       const char* bits_key) {
  WeightScheme out;
  out.packing = Packing::kMxfp4;
  out.bits = 4;
  MILLRACE_ASSIGN_OR_RETURN(const int64_t bits,
                            weights.IntegerOr(bits_key, 1, 64, out.bits));
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            weights.StringOr("type", "float"));
  MILLRACE_ASSIGN_OR_RETURN(const bool symmetric,
                            weights.BoolOr("symmetric", true));
  if (bits != out.bits || type != "float" || !symmetric) {
    return Refuse(weights, bits_key,
                  absl::StrCat("MXFP4 weights of ", bits, " bits, type '",
                               Printable(type), "'",
                               symmetric ? "," : ", not symmetric,"));
  }
  MILLRACE_ASSIGN_OR_RETURN(
      out.group_size, weights.IntegerOr("group_size", 1, kGroupMax, kBlock));
  if (out.group_size != kBlock) {
    return Refuse(weights, "group_size",
                  absl::StrCat("MXFP4 weights in groups of ", out.group_size));
  }
  return out;
}

// One of compressed-tensors' groups.
absl::StatusOr<WeightScheme> ReadGroupScheme(const JsonObject& group,
                                             const std::string& format) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject weights, group.Object("weights"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::string strategy,
      weights.StringOr("strategy",
                       weights.Has("group_size") ? "group" : "tensor"));
  if (format == "pack-quantized") {
    return ReadInt4(weights, strategy);
  }
  if (format == "mxfp4-pack-quantized") {
    return ReadMxfp4(weights, "num_bits");
  }
  if (format == "float-quantized") {
    if (strategy != "block" || !IsSquareOf128(weights, "block_structure")) {
      return Refuse(weights, "strategy",
                    "FP8 weights with other scales than of blocks of "
                    "128 x 128");
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                              weights.StringOr("type", "float"));
    MILLRACE_ASSIGN_OR_RETURN(const int64_t bits,
                              weights.IntegerOr("num_bits", 1, 64, 8));
    if (type != "float" || bits != 8) {
      return Refuse(weights, "num_bits",
                    absl::StrCat("float weights of ", bits, " bits, type '",
                                 Printable(type), "',"));
    }
    return WeightScheme();
  }
  return Refuse(
      group, "weights",
      absl::StrCat("weights of the format '", Printable(format), "'"));
}

absl::StatusOr<WeightScheme> ReadMlxScheme(const JsonObject& at) {
  WeightScheme out;
  MILLRACE_ASSIGN_OR_RETURN(const std::string mode,
                            at.StringOr("mode", "affine"));
  if (mode == "mxfp4") {
    return ReadMxfp4(at, "bits");
  }
  if (mode != "affine") {
    return Refuse(
        at, "mode",
        absl::StrCat("MLX weights of the mode '", Printable(mode), "'"));
  }
  out.packing = Packing::kMlxAffine;
  MILLRACE_ASSIGN_OR_RETURN(const int64_t bits,
                            at.IntegerOr("bits", 1, 64, kMlxBits));
  if (bits != 4 && bits != 8) {
    return Refuse(at, "bits", absl::StrCat("MLX weights of ", bits, " bits"));
  }
  out.bits = static_cast<int>(bits);
  MILLRACE_ASSIGN_OR_RETURN(out.group_size, ReadGroupSize(at, kMlxGroup));
  return out;
}

absl::Status RefuseSecondMethod(const JsonObject& config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (!config.Has(key)) {
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject rules, config.Object(key));
    if (rules.Has("quant_method")) {
      return WithHint(
          config.ErrorAt(key, "contradicts `quantization` beside it"),
          "keep the one that the weights were packed by");
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Fills one HfQuantisation.
struct HfQuantisation::Reader {
  HfQuantisation out;

  absl::Status ReadFp8(const JsonObject& at) {
    out.method_ = QuantisationMethod::kFp8;
    MILLRACE_ASSIGN_OR_RETURN(const std::string code,
                              at.StringOr("fmt", "e4m3"));
    if (code != "e4m3") {
      return Refuse(
          at, "fmt",
          absl::StrCat("FP8 weights of the kind '", Printable(code), "'"));
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::string activations,
                              at.StringOr("activation_scheme", "dynamic"));
    if (activations != "dynamic") {
      return Refuse(at, "activation_scheme", "activations with static scales");
    }
    if (!IsSquareOf128(at, "weight_block_size")) {
      return Refuse(at, "weight_block_size",
                    "FP8 weights with other scales than of blocks of "
                    "128 x 128");
    }
    Rule rule;
    MILLRACE_RETURN_IF_ERROR(rule.targets.Add("Linear", ""));
    out.rules_.push_back(std::move(rule));
    // Never converted, listed or not.
    MILLRACE_RETURN_IF_ERROR(out.ignored_.Add("lm_head", ""));
    return AddPatterns(at, "modules_to_not_convert", out.ignored_);
  }

  absl::Status ReadCompressedTensors(const JsonObject& at) {
    out.method_ = QuantisationMethod::kCompressedTensors;
    MILLRACE_RETURN_IF_ERROR(RefuseExtras(at));
    MILLRACE_RETURN_IF_ERROR(
        CheckActivations(at, "kv_cache_scheme", "keys and values"));
    MILLRACE_ASSIGN_OR_RETURN(const std::string format,
                              at.StringOr("format", "unknown"));
    MILLRACE_RETURN_IF_ERROR(AddPatterns(at, "ignore", out.ignored_));
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject groups,
                              at.Object("config_groups"));
    for (const auto& member : groups.raw()) {
      const std::string key(member.key());
      MILLRACE_ASSIGN_OR_RETURN(const JsonObject group, groups.Object(key));
      if (!group.Has("weights")) {
        continue;
      }
      MILLRACE_ASSIGN_OR_RETURN(const std::string own,
                                group.StringOr("format", format));
      Rule rule;
      MILLRACE_ASSIGN_OR_RETURN(rule.scheme, ReadGroupScheme(group, own));
      MILLRACE_RETURN_IF_ERROR(
          CheckActivations(group, "input_activations", "activations"));
      MILLRACE_RETURN_IF_ERROR(
          CheckActivations(group, "output_activations", "activations"));
      MILLRACE_RETURN_IF_ERROR(AddPatterns(group, "targets", rule.targets));
      out.rules_.push_back(std::move(rule));
    }
    return absl::OkStatus();
  }

  absl::Status ReadMlx(const JsonObject& at) {
    out.method_ = QuantisationMethod::kMlx;
    MILLRACE_ASSIGN_OR_RETURN(out.default_, ReadMlxScheme(at));
    for (const auto& member : at.raw()) {
      const std::string module(member.key());
      if (member.value().is_bool()) {
        out.overrides_[module] =
            member.value().get_bool() ? out.default_ : std::nullopt;
      } else if (member.value().is_object()) {
        MILLRACE_ASSIGN_OR_RETURN(const JsonObject own, at.Object(module));
        MILLRACE_ASSIGN_OR_RETURN(out.overrides_[module], ReadMlxScheme(own));
      } else if (absl::StrContains(module, '.')) {
        return at.ErrorAt(module, "must be true, false or an object");
      }
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<HfQuantisation> HfQuantisation::Read(const JsonObject& config) {
  Reader reader;
  // MLX repeats its own under the other name, without a quant_method.
  if (config.Has("quantization")) {
    MILLRACE_RETURN_IF_ERROR(RefuseSecondMethod(config));
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject mlx,
                              config.Object("quantization"));
    MILLRACE_RETURN_IF_ERROR(reader.ReadMlx(mlx));
    return std::move(reader.out);
  }
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (!config.Has(key)) {
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject rules, config.Object(key));
    MILLRACE_ASSIGN_OR_RETURN(const std::string method,
                              rules.StringOr("quant_method", "unknown"));
    if (method == "fp8") {
      MILLRACE_RETURN_IF_ERROR(reader.ReadFp8(rules));
    } else if (method == "compressed-tensors") {
      MILLRACE_RETURN_IF_ERROR(reader.ReadCompressedTensors(rules));
    } else if (method == "mxfp4") {
      reader.out.method_ = QuantisationMethod::kMxfp4;
    } else {
      return Refuse(
          config, key,
          absl::StrCat("quantised weights of kind '", Printable(method), "'"));
    }
    break;
  }
  return std::move(reader.out);
}

absl::StatusOr<std::optional<WeightScheme>> HfQuantisation::SchemeOf(
    absl::string_view module) const {
  const auto own = overrides_.find(module);
  if (own != overrides_.end()) {
    return own->second;
  }
  MILLRACE_ASSIGN_OR_RETURN(const ModuleMatch ignored, ignored_.Match(module));
  if (ignored != ModuleMatch::kNone) {
    return std::optional<WeightScheme>();
  }
  std::optional<WeightScheme> best = default_;
  ModuleMatch closest = ModuleMatch::kNone;
  for (const Rule& rule : rules_) {
    MILLRACE_ASSIGN_OR_RETURN(const ModuleMatch match,
                              rule.targets.Match(module));
    if (match > closest) {
      closest = match;
      best = rule.scheme;
    }
  }
  return best;
}

}  // namespace millrace::model
