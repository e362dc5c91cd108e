#pragma once

#include <string>

#include "kernels/quant/weight_format.h"
#include "tests/support/tiny_models.h"

namespace millrace::testing {

// How other tools pack weights of Hugging Face folders: behind
// TinySafetensors() and TinyConfigJson().

// What vectors, and matrices that are not packed, are stored in.
kernels::WeightFormat TinyPlainFormat(kernels::WeightFormat format);

// The fields of config.json that say how weights are packed, with a comma in
// front; empty: they are not.
std::string TinyQuantisationFields(const TinyModel& model);

}  // namespace millrace::testing
