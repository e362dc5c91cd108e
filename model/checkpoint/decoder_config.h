#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/spec/model_spec.h"

namespace millrace::model {

// Largest sizes taken from a file, well above published models; products of
// two of them, times an element size, stay below 2^63.
inline constexpr int64_t kLayersMax = 10'000;
inline constexpr int64_t kHiddenMax = int64_t{1} << 20;
inline constexpr int64_t kIntermediateMax = int64_t{1} << 22;
inline constexpr int64_t kHeadsMax = int64_t{1} << 14;
inline constexpr int64_t kHeadDimMax = int64_t{1} << 13;
inline constexpr int64_t kExpertsMax = int64_t{1} << 14;
inline constexpr int64_t kVocabMax = int64_t{1} << 26;
inline constexpr int64_t kContextMax = int64_t{1} << 31;

enum class NameStyle { kHuggingFace, kGguf };

// Whether the tensors NAME.bias belong to the model.
enum class BiasRule {
  kNone,
  kRequired,
  kIfPresent,  // GGUF files do not say
};

struct MoeConfig {
  int64_t num_experts = 0;
  int64_t experts_per_token = 0;
  int64_t intermediate_size = 0;
  bool renormalise = true;
  std::vector<bool> sparse;  // [layers]: experts in this layer, else dense
};

// The sizes and switches of a decoder of the llama kind, checked one by one,
// from config.json or from GGUF keys; what its tensors must look like follows
// from it.
struct DecoderConfig {
  NameStyle style = NameStyle::kHuggingFace;
  std::string family;
  std::string source;  // path of config.json or of the GGUF file, for errors
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t context_length = 0;
  double eps = 1e-6;
  RopeSpec rope;                 // without divisors
  bool rope_divisors = false;    // rope_freqs.weight is taken where it is there
  std::vector<bool> rotated;     // [layers]; false: no rotation
  std::vector<int64_t> windows;  // [layers]; 0: all keys
  BiasRule qkv_bias = BiasRule::kNone;
  BiasRule output_bias = BiasRule::kNone;
  BiasRule ffn_bias = BiasRule::kNone;
  bool qk_norm = false;
  std::optional<bool> tied;  // unset: tied where the head is missing
  std::optional<MoeConfig> moe;
};

}  // namespace millrace::model
