#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/hf_quantisation.h"
#include "model/spec/model_spec.h"

namespace millrace::model {

// Some rows of one of several equal matrices stored in one tensor
// [num_slices, slice_rows, cols], as fused experts are.
struct SliceRequest {
  std::string name;
  int64_t num_slices = 0;
  int64_t slice_rows = 0;
  int64_t cols = 0;
  int64_t slice = 0;      // in [0, num_slices)
  int64_t row_begin = 0;  // in that slice
  int64_t rows = 0;
};

// Where the builder of a ModelSpec finds tensors. Const, any thread. Errors are
// InputErrors naming file and tensor: missing, other shape than asked for, or
// in a type that is not computed with.
class TensorSupply {
 public:
  virtual ~TensorSupply() = default;

  [[nodiscard]] virtual bool Has(absl::string_view name) const = 0;
  [[nodiscard]] virtual absl::StatusOr<Matrix> TakeMatrix(
      const std::string& name, int64_t rows, int64_t cols) const = 0;
  [[nodiscard]] virtual absl::StatusOr<Vector> TakeVector(
      const std::string& name, int64_t size) const = 0;
  [[nodiscard]] virtual absl::StatusOr<Matrix> TakeSlice(
      const SliceRequest& request) const = 0;
};

// A supply that has what is asked for, with no bytes behind it: for planning
// with a model of which only the configuration is at hand. Matrices are packed
// as the configuration says, the rest is in `format`.
class AssumedTensors final : public TensorSupply {
 public:
  // Borrows `quantisation`.
  AssumedTensors(kernels::WeightFormat format,
                 const HfQuantisation& quantisation)
      : format_(format), quantisation_(quantisation) {}

  // Fused experts are never assumed.
  [[nodiscard]] bool Has(absl::string_view) const override { return false; }
  [[nodiscard]] absl::StatusOr<Matrix> TakeMatrix(const std::string& name,
                                                  int64_t rows,
                                                  int64_t cols) const override;
  [[nodiscard]] absl::StatusOr<Vector> TakeVector(const std::string& name,
                                                  int64_t size) const override;
  [[nodiscard]] absl::StatusOr<Matrix> TakeSlice(
      const SliceRequest& request) const override;

 private:
  const kernels::WeightFormat format_;
  const HfQuantisation& quantisation_;
};

}  // namespace millrace::model
