#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/spec/model_spec.h"
#include "stage-worker/runtime/stage_runner.h"

namespace millrace::cli {

// Keeps the hidden states of every layer and the logits of one sequence, for
// `eval --dump`. Stages write to parts of their own; read after they are done.
class DumpTap final : public worker::StageTap {
 public:
  DumpTap(const model::ModelSpec& spec, std::vector<int32_t> tokens);

  void OnHidden(int64_t layer, const transport::Frame& frame,
                const float* hidden, int64_t num_rows,
                int64_t hidden_size) override;
  void OnLogits(const transport::Row& row, const float* logits,
                int64_t vocab_size) override;

  // A safetensors file with `tokens` I32 [T], `hidden.0` ... `hidden.L` F32
  // [T, H] and `logits` F32 [T, V].
  [[nodiscard]] absl::Status Write(const std::string& path) const;

 private:
  const std::vector<int32_t> tokens_;
  const int64_t hidden_size_;
  const int64_t vocab_size_;
  std::vector<std::vector<float>> hidden_;  // [L + 1][T * H]
  std::vector<float> logits_;               // [T * V]
};

}  // namespace millrace::cli
