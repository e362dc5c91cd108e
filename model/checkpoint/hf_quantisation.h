#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "model/checkpoint/module_filter.h"

namespace millrace::model {

// Who packed the weights, which says what their tensors are called.
enum class QuantisationMethod {
  kNone,
  kFp8,                // NAME.weight, NAME.weight_scale_inv
  kCompressedTensors,  // NAME.weight_packed, NAME.weight_scale, ...
  kMlx,                // NAME.weight, NAME.scales, NAME.biases
  kMxfp4,              // stacks of experts NAME_blocks, NAME_scales
};

enum class Packing { kFp8Blocks, kInt4, kMlxAffine, kMxfp4 };

// How the weights of a module are packed.
struct WeightScheme {
  Packing packing = Packing::kFp8Blocks;
  // Columns that share a scale, a multiple of 32; 0: the whole row. Of FP8
  // blocks 128.
  int64_t group_size = 128;
  int bits = 8;
  bool zero_points = false;  // kInt4
};

// `quantization_config` (or `compression_config`, or MLX's `quantization`) of a
// config.json: which modules are packed how. What is actually packed, the
// tensor table says. Const; one thread at a time.
class HfQuantisation {
 public:
  // No quantisation where config.json has none. InputError naming key and
  // kind for everything that is not supported.
  static absl::StatusOr<HfQuantisation> Read(const JsonObject& config);

  [[nodiscard]] QuantisationMethod method() const { return method_; }
  // How a module would be packed; unset: it is left as it was. InputError
  // where a pattern cannot be applied.
  [[nodiscard]] absl::StatusOr<std::optional<WeightScheme>> SchemeOf(
      absl::string_view module) const;

 private:
  struct Rule {
    ModuleFilter targets;
    WeightScheme scheme;
  };
  struct Reader;

  QuantisationMethod method_ = QuantisationMethod::kNone;
  ModuleFilter ignored_;
  std::vector<Rule> rules_;
  // MLX: modules that are packed unlike the rest, or (unset) not at all.
  std::map<std::string, std::optional<WeightScheme>, std::less<>> overrides_;
  std::optional<WeightScheme> default_;  // MLX
};

}  // namespace millrace::model
