#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/hf_quantisation.h"
#include "model/checkpoint/stored_tensors.h"
#include "model/checkpoint/tensor_supply.h"

namespace millrace::model {

// The tensors of a safetensors checkpoint whose weights may lie in parts:
// codes, scales, zero points or biases. Which weights do, the tensor table
// says; how their codes are to be read, the configuration. Weights that are not
// packed are taken as they are. Borrows both; const; one thread at a time.
class QuantisedTensors final : public TensorSupply {
 public:
  QuantisedTensors(const StoredTensors& tensors,
                   const HfQuantisation& quantisation)
      : tensors_(tensors), quantisation_(quantisation) {}

  [[nodiscard]] bool Has(absl::string_view name) const override;
  [[nodiscard]] absl::StatusOr<Matrix> TakeMatrix(const std::string& name,
                                                  int64_t rows,
                                                  int64_t cols) const override;
  [[nodiscard]] absl::StatusOr<Vector> TakeVector(const std::string& name,
                                                  int64_t size) const override {
    return tensors_.TakeVector(name, size);
  }
  [[nodiscard]] absl::StatusOr<Matrix> TakeSlice(
      const SliceRequest& request) const override;

 private:
  // A weight that is asked for: a matrix, or rows of one of a stack.
  struct Wanted {
    std::string module;  // the name without `.weight`
    SliceRequest slice;
    bool stacked = false;
  };
  [[nodiscard]] static Wanted WantedMatrix(const std::string& name,
                                           int64_t rows, int64_t cols);

  // Whether the tensor table holds the weight in parts.
  [[nodiscard]] bool IsPacked(const Wanted& wanted) const;
  [[nodiscard]] absl::StatusOr<Matrix> TakeParts(const Wanted& wanted) const;
  // Of a module that lies there packed and plain.
  [[nodiscard]] absl::Status RefuseTwoForms(const Wanted& wanted) const;
  // How a module that lies in parts is packed; `codes` for errors.
  [[nodiscard]] absl::StatusOr<WeightScheme> SchemeOf(
      const Wanted& wanted, const StoredTensor& codes) const;
  // A part with this shape per matrix and one of these types.
  [[nodiscard]] absl::StatusOr<const StoredTensor*> Part(
      const Wanted& wanted, const std::string& name, std::vector<int64_t> shape,
      std::initializer_list<absl::string_view> types) const;
  // Scales or biases, one of each row and group, in F16 or BF16.
  [[nodiscard]] absl::StatusOr<const StoredTensor*> HalfPart(
      const Wanted& wanted, const std::string& name, int64_t group_size) const;
  [[nodiscard]] absl::StatusOr<Matrix> TakeFp8(const Wanted& wanted,
                                               const char* scales_name) const;
  [[nodiscard]] absl::StatusOr<Matrix> TakeCompressed(
      const Wanted& wanted) const;
  [[nodiscard]] absl::StatusOr<Matrix> TakeInt4(
      const Wanted& wanted, const WeightScheme& scheme) const;
  [[nodiscard]] absl::StatusOr<Matrix> TakeMlx(
      const Wanted& wanted, const WeightScheme& scheme) const;
  // From codes of this name, shape and type, and scales in U8.
  [[nodiscard]] absl::StatusOr<Matrix> TakeMxfp4(
      const Wanted& wanted, const StoredTensor& codes,
      const std::string& scales_name) const;

  const StoredTensors& tensors_;
  const HfQuantisation& quantisation_;
};

}  // namespace millrace::model
