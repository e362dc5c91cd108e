#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/quant/weight_format.h"
#include "tests/support/gguf_writer.h"

namespace millrace::testing {

// Small random checkpoints of every family, as Hugging Face folders and as GGUF
// files. The same options and seed give the same bytes everywhere, and, in
// plain formats, the same weights in both.

enum class TinyFamily { kLlama, kMistral, kSmollm3, kQwen2, kQwen3, kQwen3Moe };
inline constexpr TinyFamily kTinyFamilies[] = {
    TinyFamily::kLlama, TinyFamily::kMistral, TinyFamily::kSmollm3,
    TinyFamily::kQwen2, TinyFamily::kQwen3,   TinyFamily::kQwen3Moe};
const char* TinyFamilyName(TinyFamily family);

// As what a Hugging Face folder holds MXFP4. Stacks: those of the experts
// alone, as NAME_blocks and NAME_scales; goes with fused_experts.
enum class TinyMxfp4 { kCompressedTensors, kMlx, kStacks };

struct TinyModel {
  TinyFamily family = TinyFamily::kLlama;
  // Of matrices. Hugging Face: f32, f16, bf16 and those of PackedFormats().
  // GGUF: those of GgufFormats(). Sizes must be multiples of the block (hidden
  // 256 for K-quants: see ForFormat).
  kernels::WeightFormat format = kernels::WeightFormat::kBf16;
  uint64_t seed = 1;
  int64_t num_layers = 6;
  int64_t hidden_size = 64;
  int64_t intermediate_size = 96;
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;
  int64_t head_dim = 16;
  int64_t vocab_size = 320;  // 260 to 18,000 with a tokenizer
  int64_t context_length = 512;
  // mistral: all layers; qwen2: from layer 2 on; 0: none. Hugging Face only.
  int64_t window = 12;
  int64_t num_experts = 8;
  int64_t experts_per_token = 2;
  int64_t expert_intermediate_size = 64;
  bool fused_experts = false;
  bool tied = false;
  bool tokenizer = true;
  int num_shards = 1;  // Hugging Face: safetensors files
  // JSON object for `rope_scaling`, Hugging Face only; empty: null.
  std::string rope_scaling;
  // Of packed formats with scales for groups; the scale of a group's first 32
  // columns holds for all of it.
  int64_t group_size = 32;
  TinyMxfp4 mxfp4 = TinyMxfp4::kCompressedTensors;
};

// The smallest model of `family` whose sizes are multiples of the block of
// `format`.
TinyModel ForFormat(TinyFamily family, kernels::WeightFormat format);

// Writes config.json, weights and, where asked for, the files of a tokenizer
// into the folder, which must exist.
void WriteTinyFolder(const TinyModel& model, const std::string& folder);

// Formats that GGUF has a type for.
std::vector<kernels::WeightFormat> GgufFormats();

// GGUF knows llama (mistral counts as one, without window), smollm3, qwen2,
// qwen3, qwen3moe. Vectors and routers are f32, as converters make them.
void WriteTinyGguf(const TinyModel& model, const std::string& path);
// The same before it becomes bytes, to be changed.
GgufWriter MakeTinyGguf(const TinyModel& model);

// One tensor of a safetensors file to be written.
struct TinySafetensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string data;
};
// Formats whose parts a Hugging Face folder holds in tensors of their own.
std::vector<kernels::WeightFormat> PackedFormats();
// All tensors of the model, in the order of the file.
std::vector<TinySafetensor> TinySafetensors(const TinyModel& model);
// A safetensors file of them.
std::string SafetensorsFile(const std::vector<TinySafetensor>& tensors);
std::string TinyConfigJson(const TinyModel& model);

}  // namespace millrace::testing
