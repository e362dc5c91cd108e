// The forward pass of every family agrees with its public reference: hidden
// states of every layer and logits within the case's tolerance, greedy answers
// whole. A mechanism left out changes the logits by a percent or more. Further
// cases run where MILLRACE_REFERENCE_DIR names a folder that holds golden/.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "cli/dump_tap.h"
#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/golden/tensor_file.h"
#include "tests/support/pipeline_run.h"
#include "tests/support/temp_dir.h"

namespace millrace::testing {
namespace {

using Tensors = std::map<std::string, ReferenceTensor>;

struct Case {
  std::string name;
  std::string folder;
  std::string model;  // the folder or its GGUF twin
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.model; }

const std::set<std::string>& Architectures() {
  static const std::set<std::string> all = {
      "LlamaForCausalLM", "MistralForCausalLM", "SmolLM3ForCausalLM",
      "Qwen2ForCausalLM", "Qwen3ForCausalLM",   "Qwen3MoeForCausalLM"};
  return all;
}

absl::StatusOr<Json> ReadCase(const std::string& folder) {
  const std::string path = folder + "/case.json";
  const auto text = ReadFile(path, 1 << 20);
  return text.ok() ? ParseJson(*text, path)
                   : absl::StatusOr<Json>(text.status());
}

void AddCases(const std::string& root, const std::string& suffix,
              std::vector<Case>& cases) {
  if (!IsDirectory(root)) {
    return;
  }
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    if (!FileExists(folder + "/case.json")) {
      continue;
    }
    const auto json = ReadCase(folder);
    const auto object = JsonObject::From(json.value(), folder);
    const auto architecture = object->String("architecture");
    if (!architecture.ok() || Architectures().count(*architecture) == 0) {
      continue;
    }
    std::string name = std::filesystem::path(folder).filename().string();
    std::replace_if(
        name.begin(), name.end(),
        [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; },
        '_');
    cases.push_back({name + suffix, folder, folder});
    if (FileExists(folder + "/model.gguf")) {
      cases.push_back(
          {name + "_gguf" + suffix, folder, folder + "/model.gguf"});
    }
  }
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  AddCases(MILLRACE_TEST_DATA_DIR "/golden", "", cases);
  if (const char* root = std::getenv("MILLRACE_REFERENCE_DIR")) {
    AddCases(std::string(root) + "/golden", "_of_reference_dir", cases);
  }
  return cases;
}

class GoldenTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto json = ReadCase(GetParam().folder);
    ASSERT_TRUE(json.ok()) << json.status();
    const auto object = JsonObject::From(*json, GetParam().folder);
    tolerance_ = object->Number("tolerance", 1e-7, 1e-4).value();
    auto want = ReadTensorFile(GetParam().folder + "/reference.safetensors");
    ASSERT_TRUE(want.ok()) << want.status();
    want_ = *std::move(want);
    auto checkpoint = model::Checkpoint::Open(GetParam().model);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint_ = *std::move(checkpoint);
    compute_.isa = kernels::BestIsa();
    compute_.compute = kernels::ComputeMode::kExact;
    compute_.kv_type = kernels::KvType::kF32;
    request_.prompt = want_["tokens"].integers;
    compute_.context = static_cast<int64_t>(request_.prompt.size() +
                                            want_["greedy"].integers.size());
  }
  Outcome Run(worker::StageTap* tap) {
    auto pipeline = StartPipeline(*checkpoint_, compute_, 1, tap);
    EXPECT_TRUE(pipeline.ok()) << pipeline.status();
    return pipeline.ok() ? RunToEnd((*pipeline)->engine(), request_)
                         : Outcome();
  }

  double tolerance_ = 0;
  Tensors want_;
  std::unique_ptr<model::Checkpoint> checkpoint_;
  cli::ComputeOptions compute_;
  coordinator::GenerateRequest request_;
};

TEST_P(GoldenTest, HiddenStatesAndLogits) {
  cli::DumpTap tap(checkpoint_->spec(), request_.prompt);
  compute_.stages = 2;
  request_.tokens_max = 0;
  request_.want_prompt_scores = true;
  request_.want_logits_crc = true;  // so that the last row has logits, too
  const Outcome outcome = Run(&tap);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  const TempDir folder;
  ASSERT_TRUE(tap.Write(folder.File("dump.safetensors")).ok());
  auto got = ReadTensorFile(folder.File("dump.safetensors"));
  ASSERT_TRUE(got.ok()) << got.status();
  int compared = 0;
  for (const auto& [name, want] : want_) {
    if (!want.floats.empty()) {
      EXPECT_LE(WorstRowError((*got)[name], want), tolerance_) << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, checkpoint_->spec().layers.size() + 2);
}

TEST_P(GoldenTest, GreedyAnswer) {
  if (want_["greedy"].integers.empty()) {
    GTEST_SKIP() << GetParam().name << " has no greedy answer";
  }
  const std::vector<int32_t>& want = want_["greedy"].integers;
  request_.tokens_max = static_cast<int64_t>(want.size());
  const Outcome outcome = Run(nullptr);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.tokens, want);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, ::testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

TEST(Golden, HasACaseOfEveryFamily) {
  std::set<std::string> seen;
  for (const Case& one : AllCases()) {
    const auto json = ReadCase(one.folder);
    seen.insert(
        JsonObject::From(*json, "case")->String("architecture").value());
  }
  EXPECT_EQ(seen, Architectures());
}

}  // namespace
}  // namespace millrace::testing
