// Exact mode does not see how weights are stored: for every format the answers
// equal, bit for bit, those of the same model with its weights written out as
// F32. A kernel of exact products that rounds elsewhere shows. That the written
// out weights are the right ones, the reader's unit tests say.
//
// No format is excluded. A weight is one exact product, or for formats with
// minima, zero points or biases one fused step and for FP8 one product, rounded
// once; so what is written out is by definition the f32 that exact products
// use, and it is the kernels' own expansion (DecodeStoredRow) that writes it:
// any other order of those steps would round differently.
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "kernels/quant/tile.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/ggml_type.h"
#include "model/checkpoint/row_composer.h"
#include "model/spec/tensor_walk.h"
#include "tests/invariance/invariance_check.h"
#include "tests/invariance/small_model.h"
#include "tests/support/temp_dir.h"

namespace millrace::testing {
namespace {

using kernels::WeightFormat;

// Stored rows as F32.
std::string Expand(WeightFormat format, const std::byte* rows, int64_t num_rows,
                   int64_t cols) {
  std::string out(static_cast<size_t>(num_rows * cols) * sizeof(float), '\0');
  std::vector<float> row(static_cast<size_t>(cols));
  const int64_t row_bytes = kernels::StoredRowBytes(format, cols);
  for (int64_t i = 0; i < num_rows; ++i) {
    kernels::DecodeStoredRow(format, rows + i * row_bytes, cols, row.data());
    std::memcpy(out.data() + static_cast<size_t>(i * cols) * sizeof(float),
                row.data(), row.size() * sizeof(float));
  }
  return out;
}

// A folder in F32 of what the checkpoint holds; the model's tensors and the
// spec's come in the same order.
void WriteExpandedFolder(const TinyModel& model,
                         const model::Checkpoint& checkpoint,
                         const TempDir& folder) {
  TinyModel plain = model;
  plain.format = WeightFormat::kF32;
  plain.fused_experts = false;
  std::vector<TinySafetensor> tensors = TinySafetensors(plain);
  size_t next = 0;
  ForEachTensor(checkpoint.spec(), [&](const model::TensorUse& use) {
    ASSERT_LT(next, tensors.size());
    const int64_t rows = std::max<int64_t>(1, use.rows);
    std::vector<std::byte> stored(static_cast<size_t>(
        rows * kernels::StoredRowBytes(use.format, use.cols)));
    const absl::Status read =
        use.matrix != nullptr
            ? model::ReadStoredRows(checkpoint, *use.matrix, 0, rows,
                                    absl::MakeSpan(stored))
            : checkpoint.Read(use.source->file_index, use.source->offset,
                              absl::MakeSpan(stored));
    ASSERT_TRUE(read.ok()) << read;
    TinySafetensor& tensor = tensors[next++];
    std::string data = Expand(use.format, stored.data(), rows, use.cols);
    ASSERT_EQ(data.size(), tensor.data.size()) << tensor.name;
    tensor.data = std::move(data);
  });
  EXPECT_EQ(next, tensors.size());
  folder.Write("config.json", TinyConfigJson(plain));
  folder.Write("model.safetensors", SafetensorsFile(tensors));
}

void WriteExpandedGguf(const TinyModel& model, const std::string& path) {
  GgufWriter writer = MakeTinyGguf(model);
  for (GgufWriterTensor& tensor : writer.tensors) {
    const model::GgmlType* type = model::FindGgmlType(tensor.type);
    ASSERT_NE(type, nullptr);
    int64_t rows = 1;
    for (size_t i = 1; i < tensor.ne.size(); ++i) {
      rows *= tensor.ne[i];
    }
    tensor.data = Expand(*type->format,
                         reinterpret_cast<const std::byte*>(tensor.data.data()),
                         rows, tensor.ne[0]);
    tensor.type = 0;  // F32
    tensor.offset.reset();
  }
  WriteTestFile(path, writer.Build());
}

// Exact answers of two models of the same sizes are the same.
void ExpectSameAnswers(const TinyModel& model, const std::string& path,
                       const std::string& expanded_path) {
  const Workload workload = MakeWorkload({.vocab_size = model.vocab_size,
                                          .prompt_tokens = 21,
                                          .tokens_max = 3,
                                          .other_prompt_max = 2,
                                          .other_tokens_max = 3});
  const auto packed = model::Checkpoint::Open(path);
  ASSERT_TRUE(packed.ok()) << packed.status();
  const auto expanded = model::Checkpoint::Open(expanded_path);
  ASSERT_TRUE(expanded.ok()) << expanded.status();
  EXPECT_EQ((*expanded)->spec().layers.size(), (*packed)->spec().layers.size());
  for (const kernels::Isa isa : {kernels::BestIsa(), kernels::Isa::kScalar}) {
    Configuration configuration;
    configuration.mode = kernels::ComputeMode::kExact;
    configuration.isa = isa;
    const auto want =
        Observe(**expanded, configuration, kernels::KvType::kF32, workload);
    const auto got =
        Observe(**packed, configuration, kernels::KvType::kF32, workload);
    ASSERT_TRUE(want.ok() && want->greedy.status.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(Difference(*got, *want), "") << Describe(configuration);
  }
}

// The model as a folder of packed weights against the same weights as F32.
void ExpectSameExpanded(const TinyModel& model) {
  const TempDir folder;
  const TempDir expanded;
  WriteTinyFolder(model, folder.path());
  const auto checkpoint = model::Checkpoint::Open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  WriteExpandedFolder(model, **checkpoint, expanded);
  ExpectSameAnswers(model, folder.path(), expanded.path());
}

TEST(ExpandedTest, EveryPackedFormat) {
  for (const TinyFamily family : {TinyFamily::kLlama, TinyFamily::kQwen3Moe}) {
    for (const WeightFormat format : PackedFormats()) {
      SCOPED_TRACE(std::string(TinyFamilyName(family)) + " " +
                   kernels::TraitsOf(format).name);
      const TinyModel model = SmallModel(family, format);
      ExpectSameExpanded(model);
    }
  }
}

TEST(ExpandedTest, StacksOfMxfp4Experts) {
  for (const TinyMxfp4 kind : {TinyMxfp4::kStacks, TinyMxfp4::kMlx}) {
    TinyModel model = SmallModel(TinyFamily::kQwen3Moe, WeightFormat::kMxfp4);
    model.mxfp4 = kind;
    model.fused_experts = kind == TinyMxfp4::kStacks;
    ExpectSameExpanded(model);
  }
}

TEST(ExpandedTest, EveryFormatOfGguf) {
  for (const TinyFamily family : {TinyFamily::kLlama, TinyFamily::kQwen3Moe}) {
    for (const WeightFormat format : GgufFormats()) {
      SCOPED_TRACE(std::string(TinyFamilyName(family)) + " " +
                   kernels::TraitsOf(format).name);
      const TinyModel model = SmallModel(family, format);
      const TempDir folder;
      WriteTinyGguf(model, folder.File("packed.gguf"));
      WriteExpandedGguf(model, folder.File("expanded.gguf"));
      ExpectSameAnswers(model, folder.File("packed.gguf"),
                        folder.File("expanded.gguf"));
    }
  }
}

}  // namespace
}  // namespace millrace::testing
