#include <vector>

#include "model/checkpoint/ggml_type.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_layout.h"
#include "tests/support/tiny_models.h"
#include "tests/support/tiny_vocabulary.h"

namespace millrace::testing {
namespace {

using kernels::WeightFormat;

uint32_t U32(int64_t value) { return static_cast<uint32_t>(value); }

const char* ArchitectureOf(TinyFamily family) {
  switch (family) {
    case TinyFamily::kLlama:
    case TinyFamily::kMistral:
      return "llama";
    case TinyFamily::kSmollm3:
      return "smollm3";
    case TinyFamily::kQwen2:
      return "qwen2";
    case TinyFamily::kQwen3:
      return "qwen3";
    case TinyFamily::kQwen3Moe:
      return "qwen3moe";
  }
  return "";
}

bool Interleaves(TinyFamily family) {
  return family == TinyFamily::kLlama || family == TinyFamily::kMistral ||
         family == TinyFamily::kSmollm3;
}

constexpr uint32_t kGgmlIds = 64;

uint32_t GgmlIdOf(WeightFormat format) {
  for (uint32_t id = 0; id < kGgmlIds; ++id) {
    const model::GgmlType* type = model::FindGgmlType(id);
    if (type != nullptr && type->format == format) {
      return id;
    }
  }
  return UINT32_MAX;
}

// The row of the half-split matrix that stands at `row` of the interleaved one.
int64_t SourceRow(int64_t row, int64_t head_dim) {
  const int64_t head = row / head_dim * head_dim;
  const int64_t place = row % head_dim;
  return head + place / 2 + (place % 2) * (head_dim / 2);
}

std::string DataOf(const TinyTensor& tensor, const TinyModel& model,
                   WeightFormat format) {
  const bool interleave = tensor.rotated_rows && Interleaves(model.family);
  std::string out;
  for (const TinyRows& part : tensor.parts) {
    for (int64_t row = 0; row < tensor.rows_per_part; ++row) {
      out += TinyRow(part, format,
                     interleave ? SourceRow(row, model.head_dim) : row);
    }
  }
  return out;
}

void SetSizes(const TinyModel& model, GgufWriter& out) {
  const std::string arch = ArchitectureOf(model.family);
  out.SetString("general.architecture", arch);
  out.SetString("general.name", "tiny");
  out.SetU32(arch + ".block_count", U32(model.num_layers));
  out.SetU32(arch + ".context_length", U32(model.context_length));
  out.SetU32(arch + ".embedding_length", U32(model.hidden_size));
  out.SetU32(arch + ".feed_forward_length", U32(model.intermediate_size));
  out.SetU32(arch + ".attention.head_count", U32(model.num_heads));
  out.SetU32(arch + ".attention.head_count_kv", U32(model.num_kv_heads));
  out.SetU32(arch + ".attention.key_length", U32(model.head_dim));
  out.SetU32(arch + ".attention.value_length", U32(model.head_dim));
  out.SetF32(arch + ".attention.layer_norm_rms_epsilon", 1e-6f);
  out.SetF32(arch + ".rope.freq_base", 10000.0f);
  out.SetU32(arch + ".vocab_size", U32(model.vocab_size));
  if (model.family == TinyFamily::kQwen3Moe) {
    out.SetU32(arch + ".expert_count", U32(model.num_experts));
    out.SetU32(arch + ".expert_used_count", U32(model.experts_per_token));
    out.SetU32(arch + ".expert_feed_forward_length",
               U32(model.expert_intermediate_size));
  }
}

void SetVocabulary(const TinyModel& model, GgufWriter& out) {
  const TinyVocabulary vocabulary = MakeTinyVocabulary(model.vocab_size);
  std::vector<int32_t> types(vocabulary.tokens.size(), 1);
  for (size_t i = types.size() - 4; i < types.size(); ++i) {
    types[i] = 3;
  }
  out.SetString("tokenizer.ggml.model", "gpt2");
  out.SetString("tokenizer.ggml.pre", "gpt-2");
  out.SetStrings("tokenizer.ggml.tokens", vocabulary.tokens);
  out.SetI32s("tokenizer.ggml.token_type", types);
  out.SetStrings("tokenizer.ggml.merges", vocabulary.merges);
  out.SetU32("tokenizer.ggml.bos_token_id", U32(vocabulary.end_of_text));
  out.SetU32("tokenizer.ggml.eos_token_id", U32(vocabulary.im_end));
  out.SetU32("tokenizer.ggml.padding_token_id", U32(vocabulary.pad));
  out.SetBool("tokenizer.ggml.add_bos_token", false);
  out.SetString("tokenizer.chat_template", kTinyChatTemplate);
}

}  // namespace

GgufWriter MakeTinyGguf(const TinyModel& model) {
  GgufWriter out;
  SetSizes(model, out);
  if (model.tokenizer) {
    SetVocabulary(model, out);
  }
  for (const TinyTensor& tensor : TinyTensors(model, true)) {
    const bool plain = tensor.shape.size() == 1 || tensor.router;
    const WeightFormat format = plain ? WeightFormat::kF32 : model.format;
    out.AddTensor(tensor.gguf_name,
                  {tensor.shape.rbegin(), tensor.shape.rend()},
                  GgmlIdOf(format), DataOf(tensor, model, format));
  }
  return out;
}

std::vector<WeightFormat> GgufFormats() {
  std::vector<WeightFormat> formats;
  for (int i = 0; i < kernels::kNumWeightFormats; ++i) {
    const auto format = static_cast<WeightFormat>(i);
    if (GgmlIdOf(format) < kGgmlIds) {
      formats.push_back(format);
    }
  }
  return formats;
}

void WriteTinyGguf(const TinyModel& model, const std::string& path) {
  WriteTestFile(path, MakeTinyGguf(model).Build());
}

}  // namespace millrace::testing
