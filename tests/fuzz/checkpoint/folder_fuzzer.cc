// Any bytes as one file of an otherwise valid Hugging Face folder: opening
// accepts or refuses. The first byte chooses the file. Failures are crashes,
// sanitizer reports, hangs and other exit codes than 4.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace {

using millrace::testing::TempDir;
using millrace::testing::TinyFamily;
using millrace::testing::TinyModel;

constexpr const char* kFiles[] = {
    "config.json",           "model.safetensors",
    "tokenizer_config.json", "generation_config.json",
    "tokenizer.json",        "model.safetensors.index.json"};
constexpr size_t kNumFiles = sizeof(kFiles) / sizeof(kFiles[0]);

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

// Folders are made once; a run replaces one file and puts it back.
struct Folders {
  Folders() {
    TinyModel model = Tiny();
    WriteTinyFolder(model, single.path());
    model.num_shards = 2;
    WriteTinyFolder(model, sharded.path());
  }
  TempDir single;
  TempDir sharded;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folders folders;
  if (size == 0) {
    return 0;
  }
  const size_t which = data[0] % kNumFiles;
  const TempDir& dir =
      which + 1 == kNumFiles ? folders.sharded : folders.single;
  const std::string path = dir.File(kFiles[which]);
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
  std::filesystem::copy_file(backup, path,
                             std::filesystem::copy_options::overwrite_existing);
  return 0;
}
