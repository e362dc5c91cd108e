// A spec whose sizes do not fit together, or whose tensors leave their files,
// is refused; provoked by damaging one field of a valid spec at a time.
#include "model/spec/model_spec_validator.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/checkpoint.h"
#include "model/spec/matrix_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::model {
namespace {

using ::millrace::testing::TempDir;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyModel;

struct Opened {
  ModelSpec spec;
  std::vector<SpecFile> files;
};

Opened OpenTiny(kernels::WeightFormat format = kernels::WeightFormat::kBf16) {
  TinyModel model;
  model.format = format;
  model.family = TinyFamily::kQwen3Moe;
  model.num_layers = 1;
  TempDir dir;
  WriteTinyFolder(model, dir.path());
  const auto checkpoint = Checkpoint::Open(dir.path());
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  Opened out;
  out.spec = (*checkpoint)->spec();
  out.files = {{"model.safetensors", 1 << 20}};
  return out;
}

AttentionOp& Attention(ModelSpec& spec) {
  return std::get<AttentionOp>(spec.layers[0].operations[0]);
}
MoeFfnOp& Moe(ModelSpec& spec) {
  return std::get<MoeFfnOp>(spec.layers[0].operations[1]);
}

TEST(ModelSpecValidator, AcceptsWhatIsRight) {
  const Opened opened = OpenTiny();
  EXPECT_TRUE(ValidateModelSpec(opened.spec, opened.files).ok());
  EXPECT_TRUE(ValidateModelSpec(opened.spec, {}).ok());
}

TEST(ModelSpecValidator, RefusesEveryDamage) {
  const Opened opened = OpenTiny();
  const std::vector<std::function<void(ModelSpec&)>> damages = {
      [](ModelSpec& s) { s.hidden_size = 0; },
      [](ModelSpec& s) { s.hidden_size = 128; },
      [](ModelSpec& s) { s.vocab_size = 321; },
      [](ModelSpec& s) { s.context_length = 0; },
      [](ModelSpec& s) { s.layers.clear(); },
      [](ModelSpec& s) { s.stop_tokens = {320}; },
      [](ModelSpec& s) { s.stop_tokens = {-1}; },
      [](ModelSpec& s) { s.head.rows -= 1; },
      [](ModelSpec& s) { s.final_norm.weight.size = 63; },
      [](ModelSpec& s) { s.embedding.source.file_index = 1; },
      [](ModelSpec& s) { s.embedding.source.file_index = -1; },
      [](ModelSpec& s) { s.embedding.source.offset = -1; },
      [](ModelSpec& s) { s.embedding.source.offset = INT64_MAX; },
      [](ModelSpec& s) { s.embedding.source.offset = 1 << 20; },
      [](ModelSpec& s) { s.embedding.source.bytes += 1; },
      [](ModelSpec& s) {
        s.embedding.format = static_cast<kernels::WeightFormat>(200);
      },
      [](ModelSpec& s) {
        s.embedding.format = kernels::WeightFormat::kQ4_K;  // 64 % 256
      },
      [](ModelSpec& s) {
        s.final_norm.weight.format = kernels::WeightFormat::kQ8_0;
      },
      [](ModelSpec& s) { Attention(s).num_kv_heads = 0; },
      [](ModelSpec& s) { Attention(s).num_kv_heads = 3; },
      [](ModelSpec& s) { Attention(s).head_dim = 32; },
      [](ModelSpec& s) { Attention(s).head_dim = int64_t{1} << 40; },
      [](ModelSpec& s) { Attention(s).window = -1; },
      [](ModelSpec& s) { Attention(s).q.bias = Vector(); },
      [](ModelSpec& s) { Attention(s).q_norm->weight.size = 8; },
      [](ModelSpec& s) { Attention(s).rope->rotary_dims = 18; },
      [](ModelSpec& s) { Attention(s).rope->rotary_dims = 7; },
      [](ModelSpec& s) { Attention(s).rope->theta = NAN; },
      [](ModelSpec& s) { Attention(s).rope->factor = 0; },
      [](ModelSpec& s) { Attention(s).rope->scaling = RopeScalingKind::kYarn; },
      [](ModelSpec& s) { Attention(s).rope->divisors = Vector(); },
      [](ModelSpec& s) { Moe(s).experts_per_token = 9; },
      [](ModelSpec& s) { Moe(s).experts_per_token = 0; },
      [](ModelSpec& s) { Moe(s).experts.pop_back(); },
      [](ModelSpec& s) { Moe(s).expert_intermediate_size = 32; },
      [](ModelSpec& s) { Moe(s).experts[7].down.cols = 32; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    ModelSpec spec = opened.spec;
    damages[i](spec);
    const absl::Status status = ValidateModelSpec(spec, opened.files);
    EXPECT_FALSE(status.ok()) << "damage " << i;
    EXPECT_EQ(ExitCodeOf(status), 4) << "damage " << i;
  }
}

TEST(ModelSpecValidator, RefusesEveryDamageOfParts) {
  const Opened opened = OpenTiny(kernels::WeightFormat::kInt4Zero);
  ASSERT_TRUE(ValidateModelSpec(opened.spec, opened.files).ok());
  const std::vector<std::function<void(Matrix&)>> damages = {
      [](Matrix& m) { m.parts.reset(); },
      [](Matrix& m) { m.source.bytes *= 2; },
      [](Matrix& m) { m.format = kernels::WeightFormat::kInt4; },
      [](Matrix& m) { m.format = kernels::WeightFormat::kMlx4; },
      [](Matrix& m) { m.format = kernels::WeightFormat::kFp8; },
      [](Matrix& m) { m.format = kernels::WeightFormat::kQ4_0; },
      [](Matrix& m) { m.parts->group_size = 0; },
      [](Matrix& m) { m.parts->group_size = -32; },
      [](Matrix& m) { m.parts->group_size = 48; },
      [](Matrix& m) { m.parts->group_size = 64; },
      [](Matrix& m) { m.parts->group_size = 128; },
      [](Matrix& m) { m.parts->scale_type = ScaleType::kF32; },
      [](Matrix& m) {
        m.parts->scale_type = ScaleType::kE8m0;
        m.parts->scales.bytes = ScalesBytes(m);
      },
      [](Matrix& m) { m.parts->scales.bytes -= 2; },
      [](Matrix& m) { m.parts->scales.file_index = 1; },
      [](Matrix& m) { m.parts->scales.offset = INT64_MAX; },
      [](Matrix& m) { m.parts->offsets.reset(); },
      [](Matrix& m) { m.parts->offsets->offset = -1; },
      [](Matrix& m) { m.parts->shape->bytes = 12; },
      [](Matrix& m) { m.parts->shape->offset = 1 << 20; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    ModelSpec spec = opened.spec;
    damages[i](Moe(spec).experts[3].up);
    const absl::Status status = ValidateModelSpec(spec, opened.files);
    EXPECT_FALSE(status.ok()) << "damage " << i;
    EXPECT_EQ(ExitCodeOf(status), 4) << "damage " << i;
  }
}

}  // namespace
}  // namespace millrace::model
