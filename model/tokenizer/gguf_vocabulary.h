#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace::model {

enum class GgufTokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// The tokenizer.ggml.* keys of a GGUF file as they stand there. Lengths are
// consistent (scores and types as long as tokens, or empty), ids in range;
// whether the vocabulary can encode text is decided by the tokenizer.
struct GgufVocabulary {
  std::string model;  // gpt2, llama, gemma4, ...
  std::string pre;    // pattern id, may be empty or unknown
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<GgufTokenType> types;
  std::vector<std::string> merges;
  std::optional<int32_t> bos_id, eos_id, eot_id, eom_id, unknown_id, padding_id,
      separator_id, mask_id;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

}  // namespace millrace::model
