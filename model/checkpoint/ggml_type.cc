#include "model/checkpoint/ggml_type.h"

namespace millrace::model {
namespace {

using kernels::WeightFormat;

constexpr GgmlType kTypes[] = {
    {0, "F32", 1, 4, WeightFormat::kF32},
    {1, "F16", 1, 2, WeightFormat::kF16},
    {2, "Q4_0", 32, 18, WeightFormat::kQ4_0},
    {3, "Q4_1", 32, 20, WeightFormat::kQ4_1},
    {6, "Q5_0", 32, 22, WeightFormat::kQ5_0},
    {7, "Q5_1", 32, 24, WeightFormat::kQ5_1},
    {8, "Q8_0", 32, 34, WeightFormat::kQ8_0},
    {10, "Q2_K", 256, 84, WeightFormat::kQ2_K},
    {11, "Q3_K", 256, 110, WeightFormat::kQ3_K},
    {12, "Q4_K", 256, 144, WeightFormat::kQ4_K},
    {13, "Q5_K", 256, 176, WeightFormat::kQ5_K},
    {14, "Q6_K", 256, 210, WeightFormat::kQ6_K},
    {16, "IQ2_XXS", 256, 66, std::nullopt},
    {17, "IQ2_XS", 256, 74, std::nullopt},
    {18, "IQ3_XXS", 256, 98, std::nullopt},
    {19, "IQ1_S", 256, 50, std::nullopt},
    {20, "IQ4_NL", 32, 18, WeightFormat::kIq4Nl},
    {21, "IQ3_S", 256, 110, std::nullopt},
    {22, "IQ2_S", 256, 82, std::nullopt},
    {23, "IQ4_XS", 256, 136, std::nullopt},
    {24, "I8", 1, 1, std::nullopt},
    {25, "I16", 1, 2, std::nullopt},
    {26, "I32", 1, 4, std::nullopt},
    {27, "I64", 1, 8, std::nullopt},
    {28, "F64", 1, 8, std::nullopt},
    {29, "IQ1_M", 256, 56, std::nullopt},
    {30, "BF16", 1, 2, WeightFormat::kBf16},
    {34, "TQ1_0", 256, 54, std::nullopt},
    {35, "TQ2_0", 256, 66, std::nullopt},
    {39, "MXFP4", 32, 17, WeightFormat::kMxfp4},
    {40, "NVFP4", 64, 36, std::nullopt},
    {41, "Q1_0", 128, 18, std::nullopt},
    {42, "Q2_0", 64, 18, std::nullopt},
};

}  // namespace

const GgmlType* FindGgmlType(uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) {
      return &type;
    }
  }
  return nullptr;
}

}  // namespace millrace::model
