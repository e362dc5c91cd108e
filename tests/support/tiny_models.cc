#include "tests/support/tiny_models.h"

#include <algorithm>
#include <cstring>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_packing.h"
#include "tests/support/tiny_vocabulary.h"

namespace millrace::testing {
namespace {

using kernels::WeightFormat;

std::string Number(int64_t value) { return std::to_string(value); }

const char* ModelType(TinyFamily family) { return TinyFamilyName(family); }

const char* Architecture(TinyFamily family) {
  switch (family) {
    case TinyFamily::kLlama:
      return "LlamaForCausalLM";
    case TinyFamily::kMistral:
      return "MistralForCausalLM";
    case TinyFamily::kSmollm3:
      return "SmolLM3ForCausalLM";
    case TinyFamily::kQwen2:
      return "Qwen2ForCausalLM";
    case TinyFamily::kQwen3:
      return "Qwen3ForCausalLM";
    case TinyFamily::kQwen3Moe:
      return "Qwen3MoeForCausalLM";
  }
  return "";
}

std::string FamilyFields(const TinyModel& model) {
  switch (model.family) {
    case TinyFamily::kMistral:
      return ", \"sliding_window\": " +
             (model.window > 0 ? Number(model.window) : "null");
    case TinyFamily::kQwen2:
      return std::string(", \"use_sliding_window\": ") +
             (model.window > 0 ? "true" : "false") + ", \"sliding_window\": " +
             Number(std::max<int64_t>(1, model.window)) +
             ", \"max_window_layers\": 2";
    case TinyFamily::kSmollm3:
      return ", \"no_rope_layer_interval\": 4";
    case TinyFamily::kQwen3Moe:
      return ", \"num_experts\": " + Number(model.num_experts) +
             ", \"num_experts_per_tok\": " + Number(model.experts_per_token) +
             ", \"moe_intermediate_size\": " +
             Number(model.expert_intermediate_size) +
             ", \"norm_topk_prob\": true, \"decoder_sparse_step\": 1, "
             "\"mlp_only_layers\": []";
    default:
      return "";
  }
}

void WriteTokenizer(const TinyModel& model, const std::string& folder) {
  const TinyVocabulary vocabulary = MakeTinyVocabulary(model.vocab_size);
  WriteTestFile(folder + "/tokenizer.json", TinyTokenizerJson(vocabulary));
  WriteTestFile(folder + "/tokenizer_config.json",
                "{\"bos_token\": \"<|endoftext|>\", \"eos_token\": "
                "\"<|im_end|>\", \"chat_template\": " +
                    JsonQuoted(kTinyChatTemplate) + "}\n");
  WriteTestFile(folder + "/generation_config.json",
                "{\"bos_token_id\": " + Number(vocabulary.end_of_text) +
                    ", \"eos_token_id\": [" + Number(vocabulary.end_of_text) +
                    ", " + Number(vocabulary.im_end) +
                    "], \"do_sample\": false}\n");
}

std::string Little64(uint64_t value) { return GgufU64(value); }

void WriteShards(const TinyModel& model, const std::string& folder) {
  const std::vector<TinySafetensor> tensors = TinySafetensors(model);
  if (model.num_shards <= 1) {
    WriteTestFile(folder + "/model.safetensors", SafetensorsFile(tensors));
    return;
  }
  std::string map;
  const size_t count = static_cast<size_t>(model.num_shards);
  for (size_t shard = 0; shard < count; ++shard) {
    char name[64];
    std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors",
                  shard + 1, count);
    const std::vector<TinySafetensor> part(
        tensors.begin() +
            static_cast<std::ptrdiff_t>(tensors.size() * shard / count),
        tensors.begin() +
            static_cast<std::ptrdiff_t>(tensors.size() * (shard + 1) / count));
    for (const TinySafetensor& tensor : part) {
      map += (map.empty() ? "" : ", ") + JsonQuoted(tensor.name) + ": " +
             JsonQuoted(name);
    }
    WriteTestFile(folder + "/" + name, SafetensorsFile(part));
  }
  WriteTestFile(folder + "/model.safetensors.index.json",
                "{\"metadata\": {}, \"weight_map\": {" + map + "}}\n");
}

}  // namespace

const char* TinyFamilyName(TinyFamily family) {
  switch (family) {
    case TinyFamily::kLlama:
      return "llama";
    case TinyFamily::kMistral:
      return "mistral";
    case TinyFamily::kSmollm3:
      return "smollm3";
    case TinyFamily::kQwen2:
      return "qwen2";
    case TinyFamily::kQwen3:
      return "qwen3";
    case TinyFamily::kQwen3Moe:
      return "qwen3_moe";
  }
  return "";
}

TinyModel ForFormat(TinyFamily family, WeightFormat format) {
  TinyModel model;
  model.family = family;
  model.format = format;
  const int64_t block = kernels::TraitsOf(format).block_elements;
  if (block == 256) {
    model.hidden_size = 256;
    model.intermediate_size = 256;
    model.num_heads = 8;
    model.num_kv_heads = 2;
    model.head_dim = 32;
    model.expert_intermediate_size = 256;
    model.num_experts = 4;
  }
  return model;
}

std::string TinyConfigJson(const TinyModel& model) {
  const TinyVocabulary vocabulary =
      MakeTinyVocabulary(std::max<int64_t>(260, model.vocab_size));
  const WeightFormat plain = TinyPlainFormat(model.format);
  const char* dtype = plain == WeightFormat::kF32   ? "float32"
                      : plain == WeightFormat::kF16 ? "float16"
                                                    : "bfloat16";
  const int64_t bos = model.tokenizer ? vocabulary.end_of_text : 1;
  const int64_t eos = model.tokenizer ? vocabulary.im_end : 2;
  return std::string("{\"architectures\": [\"") + Architecture(model.family) +
         "\"], \"model_type\": \"" + ModelType(model.family) +
         "\", \"hidden_size\": " + Number(model.hidden_size) +
         ", \"intermediate_size\": " + Number(model.intermediate_size) +
         ", \"num_hidden_layers\": " + Number(model.num_layers) +
         ", \"num_attention_heads\": " + Number(model.num_heads) +
         ", \"num_key_value_heads\": " + Number(model.num_kv_heads) +
         ", \"head_dim\": " + Number(model.head_dim) +
         ", \"vocab_size\": " + Number(model.vocab_size) +
         ", \"max_position_embeddings\": " + Number(model.context_length) +
         ", \"rms_norm_eps\": 1e-06, \"rope_theta\": 10000.0"
         ", \"rope_scaling\": " +
         (model.rope_scaling.empty() ? "null" : model.rope_scaling) +
         ", \"hidden_act\": \"silu\", \"tie_word_embeddings\": " +
         (model.tied ? "true" : "false") +
         ", \"bos_token_id\": " + Number(bos) +
         ", \"eos_token_id\": " + Number(eos) + ", \"torch_dtype\": \"" +
         dtype + "\"" + FamilyFields(model) + TinyQuantisationFields(model) +
         "}\n";
}

std::string SafetensorsFile(const std::vector<TinySafetensor>& tensors) {
  std::string header = "{";
  size_t at = 0;
  for (const TinySafetensor& tensor : tensors) {
    std::string shape;
    for (const int64_t size : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + Number(size);
    }
    header += (header.size() == 1 ? "" : ",") + JsonQuoted(tensor.name) +
              ":{\"dtype\":" + JsonQuoted(tensor.dtype) + ",\"shape\":[" +
              shape + "],\"data_offsets\":[" + std::to_string(at) + "," +
              std::to_string(at + tensor.data.size()) + "]}";
    at += tensor.data.size();
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string out = Little64(header.size()) + header;
  for (const TinySafetensor& tensor : tensors) {
    out += tensor.data;
  }
  return out;
}

void WriteTinyFolder(const TinyModel& model, const std::string& folder) {
  WriteTestFile(folder + "/config.json", TinyConfigJson(model));
  WriteShards(model, folder);
  if (model.tokenizer) {
    WriteTokenizer(model, folder);
  }
}

}  // namespace millrace::testing
