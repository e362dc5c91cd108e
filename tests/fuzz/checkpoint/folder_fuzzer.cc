// Any bytes as one file of an otherwise valid Hugging Face folder: opening
// accepts or refuses, and what it accepts can be read. The first byte chooses
// folder and file. Failures are crashes, sanitizer reports, hangs and other
// exit codes than 4.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/weights_check.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace {

using millrace::testing::TempDir;
using millrace::testing::TinyFamily;
using millrace::testing::TinyModel;

enum class Form { kSingle, kSharded, kPacked };

struct Target {
  Form form;
  const char* file;
};

// Seeds begin with the index: add at the end.
constexpr Target kTargets[] = {
    {Form::kSingle, "config.json"},
    {Form::kSingle, "model.safetensors"},
    {Form::kSingle, "tokenizer_config.json"},
    {Form::kSingle, "generation_config.json"},
    {Form::kSingle, "tokenizer.json"},
    {Form::kSharded, "model.safetensors.index.json"},
    {Form::kPacked, "config.json"},
    {Form::kPacked, "model.safetensors"},
};
constexpr size_t kNumTargets = sizeof(kTargets) / sizeof(kTargets[0]);

TinyModel Tiny() {
  TinyModel model;
  model.family = TinyFamily::kQwen3Moe;
  model.num_layers = 1;
  model.hidden_size = 8;
  model.intermediate_size = 8;
  model.num_heads = 2;
  model.num_kv_heads = 1;
  model.head_dim = 4;
  model.num_experts = 2;
  model.experts_per_token = 1;
  model.expert_intermediate_size = 4;
  model.vocab_size = 260;
  return model;
}

// The same with weights in parts.
TinyModel TinyPacked() {
  TinyModel model = Tiny();
  model.format = millrace::kernels::WeightFormat::kInt4Zero;
  model.hidden_size = 32;
  model.num_heads = 2;
  model.head_dim = 16;
  model.intermediate_size = 32;
  model.expert_intermediate_size = 32;
  model.tokenizer = false;
  return model;
}

// Folders are made once; a run replaces one file and puts it back.
struct Folders {
  Folders() {
    TinyModel model = Tiny();
    WriteTinyFolder(model, single.path());
    model.num_shards = 2;
    WriteTinyFolder(model, sharded.path());
    WriteTinyFolder(TinyPacked(), packed.path());
  }
  [[nodiscard]] const TempDir& Of(Form form) const {
    switch (form) {
      case Form::kSingle:
        return single;
      case Form::kSharded:
        return sharded;
      case Form::kPacked:
        return packed;
    }
    return single;
  }
  TempDir single;
  TempDir sharded;
  TempDir packed;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folders folders;
  if (size == 0) {
    return 0;
  }
  const Target& target = kTargets[data[0] % kNumTargets];
  const TempDir& dir = folders.Of(target.form);
  const std::string path = dir.File(target.file);
  const std::string backup = path + ".valid";
  if (!std::filesystem::exists(backup)) {
    std::filesystem::copy_file(path, backup);
  }
  millrace::testing::WriteTestFile(
      path, std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  const auto checkpoint = millrace::model::Checkpoint::Open(dir.path());
  if (!checkpoint.ok() && millrace::ExitCodeOf(checkpoint.status()) != 4) {
    std::abort();
  }
  if (checkpoint.ok()) {
    // Damage is an answer, too; every row of every weight is read.
    millrace::model::CheckWeights(**checkpoint, [](int64_t) {
      return true;
    }).IgnoreError();
  }
  std::filesystem::copy_file(backup, path,
                             std::filesystem::copy_options::overwrite_existing);
  return 0;
}
