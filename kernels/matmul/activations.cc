#include <cstdint>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/matmul.h"

namespace millrace::kernels {

int64_t PackedTokenBytes(ActivationForm form, int64_t cols) {
  switch (form) {
    case ActivationForm::kF32:
      return cols * 4;
    case ActivationForm::kBf16:
      return (cols + 1) / 2 * 4;
    case ActivationForm::kInt8:
      return (cols + kGroup - 1) / kGroup *
             static_cast<int64_t>(sizeof(ActivationRecord));
  }
  return 0;
}

ActivationForm ActivationFormFor(ComputeMode mode, WeightFormat format) {
  if (mode == ComputeMode::kExact || format == WeightFormat::kF32 ||
      format == WeightFormat::kF16) {
    return ActivationForm::kF32;
  }
  return format == WeightFormat::kBf16 || format == WeightFormat::kFp8
             ? ActivationForm::kBf16
             : ActivationForm::kInt8;
}

int64_t PackedActivationBytes(ActivationForm form, int64_t num_tokens,
                              int64_t cols) {
  return (num_tokens * PackedTokenBytes(form, cols) + 63) / 64 * 64;
}

int64_t NumPanels(int64_t num_tokens) {
  return (num_tokens + kMaxPanelTokens - 1) / kMaxPanelTokens;
}

int64_t PanelBegin(int64_t num_tokens, int64_t panel) {
  return panel * num_tokens / NumPanels(num_tokens);
}

}  // namespace millrace::kernels
