#pragma once

#include "absl/status/statusor.h"
#include "model/checkpoint/decoder_config.h"
#include "model/checkpoint/tensor_supply.h"
#include "model/spec/model_spec.h"

namespace millrace::model {

// The operations of every layer, with the tensors that the configuration asks
// for. Name, digest and tokens of the result are left empty. InputError naming
// file and tensor.
absl::StatusOr<ModelSpec> BuildDecoder(const DecoderConfig& config,
                                       const TensorSupply& tensors);

}  // namespace millrace::model
