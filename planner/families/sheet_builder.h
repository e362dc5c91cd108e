#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/quant/weight_format.h"
#include "model/checkpoint/hf_quantisation.h"
#include "planner/families/config_reader.h"
#include "planner/model_sheet.h"

namespace millrace::planner {

// Adds weights to the parts of a sheet in the formats that a configuration
// names: those of `torch_dtype`, and packed ones where `quantization_config`
// says so of the module's name. Remembers the first error.
class SheetBuilder {
 public:
  // Reads types and quantisation from the text model's object, else from the
  // file around it.
  static absl::StatusOr<SheetBuilder> Create(const ConfigReader& config);

  [[nodiscard]] const absl::Status& status() const { return status_; }
  [[nodiscard]] model::QuantisationMethod method() const {
    return quantisation_.method();
  }

  // NAME.weight [rows, cols] of a linear module.
  void Linear(PartSheet& part, const std::string& module, int64_t rows,
              int64_t cols);
  // A matrix that is never packed.
  void Plain(PartSheet& part, int64_t rows, int64_t cols);
  // A router: never packed, and importing leaves it as it is.
  void Router(PartSheet& part, int64_t rows, int64_t cols);
  // In a format of blocks whatever the configuration says of modules.
  void Packed(PartSheet& part, kernels::WeightFormat format, int64_t rows,
              int64_t cols);
  // A vector in the model's type, or in f32.
  void Vector(PartSheet& part, int64_t size);
  void F32Vector(PartSheet& part, int64_t size);

 private:
  SheetBuilder(std::string object, kernels::WeightFormat plain,
               model::HfQuantisation quantisation)
      : object_(std::move(object)),
        plain_(plain),
        quantisation_(std::move(quantisation)) {}

  // Remembers an error where rows are no whole blocks of the format.
  bool CheckBlocks(kernels::WeightFormat format, int64_t cols,
                   absl::string_view module);

  std::string object_;  // the file, for errors
  kernels::WeightFormat plain_;
  model::HfQuantisation quantisation_;
  absl::Status status_;
};

}  // namespace millrace::planner
