#include <cstring>

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"
#include "kernels/ceilings/xor_of_words.h"

namespace millrace::kernels {
namespace {

uint64_t Read(const std::byte* data, int64_t bytes) {
  uint64_t sums[8] = {};
  for (int64_t at = 0; at < bytes; at += sizeof(sums)) {
    uint64_t values[8];
    std::memcpy(values, data + at, sizeof(values));
    for (int i = 0; i < 8; ++i) {
      sums[i] ^= values[i];
    }
  }
  return XorOfWords(sums);
}

}  // namespace

void AddScalarCeilings(CeilingLoops& loops) { loops.read = Read; }

Peak PeakOf(ComputeMode mode, WeightFormat format) {
  switch (ActivationFormFor(mode, format)) {
    case ActivationForm::kF32:
      return Peak::kFma;
    case ActivationForm::kBf16:
      return Peak::kPairedDot;
    case ActivationForm::kInt8:
      return Peak::kByteDot;
  }
  return Peak::kFma;
}

const char* PeakName(Peak peak) {
  switch (peak) {
    case Peak::kFma:
      return "fma";
    case Peak::kPairedDot:
      return "paired_dot";
    case Peak::kByteDot:
      return "byte_dot";
  }
  return "unknown";
}

}  // namespace millrace::kernels
