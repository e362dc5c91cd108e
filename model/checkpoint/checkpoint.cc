#include "model/checkpoint/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "kernels/quant/tile.h"
#include "model/checkpoint/decoder_builder.h"
#include "model/checkpoint/digest.h"
#include "model/checkpoint/gguf_config.h"
#include "model/checkpoint/gguf_set.h"
#include "model/checkpoint/gguf_vocabulary_reader.h"
#include "model/checkpoint/hf_config.h"
#include "model/checkpoint/hf_quantisation.h"
#include "model/checkpoint/hf_text.h"
#include "model/checkpoint/quantised_tensors.h"
#include "model/checkpoint/safetensors_folder.h"
#include "model/checkpoint/spec_from_config.h"
#include "model/spec/model_spec_validator.h"
#include "model/tokenizer/gguf_vocabulary.h"

namespace millrace::model {
namespace {

constexpr int64_t kConfigBytesMax = int64_t{16} << 20;

// Everything a checkpoint answers with, whatever it was read from.
struct Parts {
  ModelSpec spec;
  WeightFiles weights;
  std::optional<std::string> tokenizer_json_path;
  std::optional<GgufVocabulary> vocabulary;
  std::optional<std::string> chat_template;
  std::optional<GenerationDefaults> generation_defaults;
  std::string bos_token_text;
  std::string eos_token_text;
};

template <typename T>
const T* PointerTo(const std::optional<T>& value) {
  return value.has_value() ? &*value : nullptr;
}

class OpenedCheckpoint final : public Checkpoint {
 public:
  explicit OpenedCheckpoint(Parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] const ModelSpec& spec() const override { return parts_.spec; }
  [[nodiscard]] const std::vector<std::string>& files() const override {
    return parts_.weights.tensors.paths();
  }
  [[nodiscard]] absl::Status Read(int32_t file_index, int64_t offset,
                                  absl::Span<std::byte> out) const override {
    const auto& files = parts_.weights.files;
    if (file_index < 0 || file_index >= static_cast<int64_t>(files.size())) {
      return absl::InternalError(
          absl::StrCat("file ", file_index, " of ", files.size()));
    }
    return files[static_cast<size_t>(file_index)]->Read(offset, out);
  }
  [[nodiscard]] const std::string* tokenizer_json_path() const override {
    return PointerTo(parts_.tokenizer_json_path);
  }
  [[nodiscard]] const GgufVocabulary* gguf_vocabulary() const override {
    return PointerTo(parts_.vocabulary);
  }
  [[nodiscard]] const std::string* chat_template() const override {
    return PointerTo(parts_.chat_template);
  }
  [[nodiscard]] const std::optional<GenerationDefaults>& generation_defaults()
      const override {
    return parts_.generation_defaults;
  }
  [[nodiscard]] const std::string& bos_token_text() const override {
    return parts_.bos_token_text;
  }
  [[nodiscard]] const std::string& eos_token_text() const override {
    return parts_.eos_token_text;
  }

 private:
  const Parts parts_;
};

// The last component of a path, without `.gguf` and the number of a part.
std::string ModelName(const std::string& path) {
  std::error_code error;
  std::filesystem::path full = std::filesystem::weakly_canonical(path, error);
  if (error) {
    full = path;
  }
  std::string name = full.filename().string();
  if (full.extension() == ".gguf") {
    name = full.stem().string();
    const size_t part = name.rfind("-00001-of-");
    if (part != std::string::npos && part > 0) {
      name.resize(part);
    }
  }
  return name.empty() ? "model" : Printable(name);
}

absl::Status Validate(const Parts& parts) {
  std::vector<SpecFile> files;
  for (const auto& file : parts.weights.files) {
    files.push_back({file->path(), file->size()});
  }
  return ValidateModelSpec(parts.spec, files);
}

struct HfConfigFile {
  std::string text;
  Json json;
};

absl::StatusOr<HfConfigFile> ReadConfigFile(const std::string& path) {
  HfConfigFile out;
  MILLRACE_ASSIGN_OR_RETURN(out.text, ReadFile(path, kConfigBytesMax));
  MILLRACE_ASSIGN_OR_RETURN(out.json,
                            ParseJson(out.text, Printable(path, 512)));
  return out;
}

absl::StatusOr<Parts> OpenFolder(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/config.json");
  auto file = ReadConfigFile(path);
  if (!file.ok()) {
    return FileExists(path)
               ? file.status()
               : WithHint(file.status(),
                          "a model is a folder with config.json and "
                          "safetensors files, or a .gguf file");
  }
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject config,
                            JsonObject::From(file->json, Printable(path, 512)));
  MILLRACE_ASSIGN_OR_RETURN(const DecoderConfig decoder,
                            ReadHfConfig(config, path));
  MILLRACE_ASSIGN_OR_RETURN(const HfQuantisation quantisation,
                            HfQuantisation::Read(config));
  Parts parts;
  MILLRACE_ASSIGN_OR_RETURN(parts.weights, OpenSafetensorsFolder(folder));
  MILLRACE_ASSIGN_OR_RETURN(
      parts.spec, BuildDecoder(decoder, QuantisedTensors(parts.weights.tensors,
                                                         quantisation)));
  MILLRACE_RETURN_IF_ERROR(parts.weights.gap);
  MILLRACE_ASSIGN_OR_RETURN(HfText text,
                            ReadHfText(folder, config, parts.spec.vocab_size));
  parts.spec.stop_tokens = std::move(text.stop_tokens);
  parts.spec.bos_token = text.bos_token;
  parts.tokenizer_json_path = std::move(text.tokenizer_json_path);
  parts.chat_template = std::move(text.chat_template);
  parts.generation_defaults = text.generation_defaults;
  parts.bos_token_text = std::move(text.bos_token_text);
  parts.eos_token_text = std::move(text.eos_token_text);
  MILLRACE_ASSIGN_OR_RETURN(parts.spec.digest,
                            CheckpointDigest(file->text, parts.weights));
  return parts;
}

// Tokens after which a chat model has nothing more to say; files name only some
// of them by id.
bool EndsGeneration(const std::string& token) {
  for (const char* known : {"<|eot_id|>", "<|eom_id|>", "<|im_end|>",
                            "<|end_of_text|>", "<|endoftext|>"}) {
    if (token == known) {
      return true;
    }
  }
  return false;
}

void SetGgufTokens(Parts& parts) {
  const GgufVocabulary& vocabulary = *parts.vocabulary;
  std::vector<int32_t>& stops = parts.spec.stop_tokens;
  for (const auto& id :
       {vocabulary.eos_id, vocabulary.eot_id, vocabulary.eom_id}) {
    if (id.has_value()) {
      stops.push_back(*id);
    }
  }
  for (size_t i = 0; i < vocabulary.types.size(); ++i) {
    if (vocabulary.types[i] == GgufTokenType::kControl &&
        EndsGeneration(vocabulary.tokens[i])) {
      stops.push_back(static_cast<int32_t>(i));
    }
  }
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  parts.spec.bos_token = vocabulary.bos_id;
  if (vocabulary.bos_id.has_value()) {
    parts.bos_token_text =
        vocabulary.tokens[static_cast<size_t>(*vocabulary.bos_id)];
  }
  if (vocabulary.eos_id.has_value()) {
    parts.eos_token_text =
        vocabulary.tokens[static_cast<size_t>(*vocabulary.eos_id)];
  }
}

absl::Status ReadGgufText(const GgufFile& file, Parts& parts) {
  constexpr char kTemplate[] = "tokenizer.chat_template";
  if (file.Has(kTemplate)) {
    MILLRACE_ASSIGN_OR_RETURN(parts.chat_template, file.String(kTemplate));
  }
  if (!HasGgufVocabulary(file)) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(parts.vocabulary, GgufVocabularyOf(file));
  const int64_t num_tokens =
      static_cast<int64_t>(parts.vocabulary->tokens.size());
  if (num_tokens > parts.spec.vocab_size) {
    return file.ErrorAt("tokenizer.ggml.tokens",
                        absl::StrCat("has ", Counted(num_tokens, "token"),
                                     ", the embedding has ",
                                     Counted(parts.spec.vocab_size, "row")));
  }
  SetGgufTokens(parts);
  return absl::OkStatus();
}

// rope_freqs.weight divides frequencies: a zero or NaN in it would only show as
// nonsense text.
absl::Status CheckDivisors(const Parts& parts) {
  const auto& attention =
      std::get<AttentionOp>(parts.spec.layers.front().operations.front());
  if (!attention.rope.has_value() || !attention.rope->divisors.has_value()) {
    return absl::OkStatus();
  }
  const Vector& divisors = *attention.rope->divisors;
  const RandomAccessFile& file =
      *parts.weights.files[static_cast<size_t>(divisors.source.file_index)];
  std::vector<std::byte> stored(static_cast<size_t>(divisors.source.bytes));
  MILLRACE_RETURN_IF_ERROR(
      file.Read(divisors.source.offset, absl::MakeSpan(stored)));
  std::vector<float> values(static_cast<size_t>(divisors.size));
  kernels::DecodeStoredRow(divisors.format, stored.data(), divisors.size,
                           values.data());
  for (const float value : values) {
    if (!std::isfinite(value) || value <= 0) {
      return InputError(
          Printable(file.path(), 512),
          absl::StrCat("tensor '", divisors.source.name, "': holds ", value,
                       ", divisors must be positive"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Parts> OpenGguf(const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(GgufSet set, OpenGgufSet(path));
  const GgufFile& file = *set.first;
  Parts parts;
  parts.weights = std::move(set.weights);
  MILLRACE_ASSIGN_OR_RETURN(const DecoderConfig decoder,
                            ReadGgufConfig(file, parts.weights.tensors));
  MILLRACE_ASSIGN_OR_RETURN(parts.spec,
                            BuildDecoder(decoder, parts.weights.tensors));
  MILLRACE_RETURN_IF_ERROR(CheckDivisors(parts));
  MILLRACE_RETURN_IF_ERROR(ReadGgufText(file, parts));
  MILLRACE_ASSIGN_OR_RETURN(parts.spec.digest,
                            CheckpointDigest("", parts.weights));
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(
    const std::string& path) {
  absl::StatusOr<Parts> parts =
      IsDirectory(path) ? OpenFolder(path) : OpenGguf(path);
  MILLRACE_RETURN_IF_ERROR(parts.status());
  parts->spec.name = ModelName(path);
  MILLRACE_RETURN_IF_ERROR(Validate(*parts));
  return std::make_unique<OpenedCheckpoint>(*std::move(parts));
}

absl::StatusOr<ModelSpec> SpecFromConfig(const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const HfConfigFile file, ReadConfigFile(path));
  const std::string object = Printable(path, 512);
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject config,
                            JsonObject::From(file.json, object));
  MILLRACE_ASSIGN_OR_RETURN(const DecoderConfig decoder,
                            ReadHfConfig(config, path));
  MILLRACE_ASSIGN_OR_RETURN(const kernels::WeightFormat format,
                            ReadHfWeightFormat(config));
  if (decoder.num_layers *
          (decoder.moe.has_value() ? decoder.moe->num_experts : 1) >
      kAssumedMatricesMax) {
    return config.ErrorAt("num_hidden_layers",
                          "times num_experts is too large");
  }
  MILLRACE_ASSIGN_OR_RETURN(const HfQuantisation quantisation,
                            HfQuantisation::Read(config));
  MILLRACE_ASSIGN_OR_RETURN(
      ModelSpec spec,
      BuildDecoder(decoder, AssumedTensors(format, quantisation)));
  spec.head_is_embedding = decoder.tied.value_or(false);
  std::error_code error;
  const auto full = std::filesystem::weakly_canonical(path, error);
  spec.name =
      error ? object : Printable(full.parent_path().filename().string());
  MILLRACE_ASSIGN_OR_RETURN(spec.digest,
                            CheckpointDigest(file.text, WeightFiles()));
  MILLRACE_RETURN_IF_ERROR(ValidateModelSpec(spec, {}));
  return spec;
}

}  // namespace millrace::model
