// Weights that a Hugging Face folder keeps in parts have the values that the
// parts mean, whatever rows are read; what is missing, damaged or of another
// form is refused by name. Provoked by tiny checkpoints of every packed format,
// whole and with one tensor changed.
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/quant/half.h"
#include "kernels/quant/tile.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/row_composer.h"
#include "model/checkpoint/spec_from_config.h"
#include "model/checkpoint/weights_check.h"
#include "model/spec/model_costs.h"
#include "model/spec/tensor_walk.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::model {
namespace {

using ::millrace::kernels::WeightFormat;
using ::millrace::testing::PackedFormats;
using ::millrace::testing::SafetensorsFile;
using ::millrace::testing::TempDir;
using ::millrace::testing::TinyConfigJson;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyModel;
using ::millrace::testing::TinyMxfp4;
using ::millrace::testing::TinySafetensor;
using ::millrace::testing::TinySafetensors;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TinyModel Packed(TinyFamily family, WeightFormat format) {
  TinyModel model;
  model.family = family;
  model.format = format;
  model.num_layers = 2;
  model.num_experts = 4;
  model.vocab_size = 70;
  model.tokenizer = false;
  if (format == WeightFormat::kFp8) {
    // More than one block of 128 each way, the last one partial.
    model.hidden_size = 200;
    model.intermediate_size = 133;
    model.expert_intermediate_size = 131;
  }
  return model;
}

std::vector<TinyModel> AllPacked() {
  std::vector<TinyModel> models;
  for (const TinyFamily family : {TinyFamily::kLlama, TinyFamily::kQwen3Moe}) {
    for (const WeightFormat format : PackedFormats()) {
      models.push_back(Packed(family, format));
    }
    models.push_back(Packed(family, WeightFormat::kMxfp4));
    models.back().mxfp4 = TinyMxfp4::kMlx;
    for (const WeightFormat format :
         {WeightFormat::kInt4ZeroF16, WeightFormat::kMlx8}) {
      models.push_back(Packed(family, format));
      models.back().intermediate_size = 128;
      models.back().group_size = 64;
    }
  }
  models.push_back(Packed(TinyFamily::kQwen3Moe, WeightFormat::kMxfp4));
  models.back().mxfp4 = TinyMxfp4::kStacks;
  models.back().fused_experts = true;
  return models;
}

std::string NameOf(const TinyModel& model) {
  return absl::StrCat(TinyFamilyName(model.family), " ",
                      kernels::TraitsOf(model.format).name, " ",
                      static_cast<int>(model.mxfp4), " ", model.group_size);
}

std::unique_ptr<Checkpoint> MustOpen(const std::string& path) {
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
}

std::vector<std::byte> ReadRows(const Checkpoint& checkpoint,
                                const Matrix& matrix, int64_t begin,
                                int64_t count) {
  std::vector<std::byte> stored(static_cast<size_t>(
      count * kernels::StoredRowBytes(matrix.format, matrix.cols)));
  const absl::Status read =
      ReadStoredRows(checkpoint, matrix, begin, count, absl::MakeSpan(stored));
  EXPECT_TRUE(read.ok()) << read;
  return stored;
}

// What the tensors of a file mean, read from their description alone and one
// element at a time.
class Meaning {
 public:
  explicit Meaning(const std::vector<TinySafetensor>& tensors) {
    for (const TinySafetensor& tensor : tensors) {
      tensors_[tensor.name] = tensor;
    }
  }

  // Element (row, k) of a weight whose codes are in the tensor `codes`; rows
  // are counted through a stack.
  double Element(const std::string& codes, WeightFormat format, int64_t row,
                 int64_t k) const {
    const TinySafetensor& tensor = tensors_.at(codes);
    const std::string_view name = codes;
    if (tensor.dtype == "BF16" || tensor.dtype == "F16") {
      return Half(codes, row * tensor.shape.back() + k);
    }
    if (tensor.dtype == "F8_E4M3") {
      const std::string scales = codes + "_scale_inv";
      return E4m3(Byte(codes, row * tensor.shape[1] + k)) *
             static_cast<double>(
                 Load<float>(scales, row / 128 * Last(scales) + k / 128));
    }
    if (name.ends_with("_blocks")) {
      const std::string scales = codes.substr(0, codes.size() - 6) + "scales";
      const int64_t groups = Last(scales);
      return E2m1(Nibble(codes, row * groups * 32 + k)) *
             std::exp2(Byte(scales, row * groups + k / 32) - 127);
    }
    if (name.ends_with(".weight_packed")) {
      return Compressed(codes, format, row, k);
    }
    return Mlx(codes, format, row, k);
  }

 private:
  template <typename T>
  T Load(const std::string& name, int64_t index) const {
    T value;
    std::memcpy(
        &value,
        tensors_.at(name).data.data() + index * static_cast<int64_t>(sizeof(T)),
        sizeof(T));
    return value;
  }
  int64_t Last(const std::string& name) const {
    return tensors_.at(name).shape.back();
  }
  int Byte(const std::string& name, int64_t index) const {
    return Load<uint8_t>(name, index);
  }
  // Element of four bits, the low nibble first.
  int Nibble(const std::string& name, int64_t index) const {
    return Byte(name, index / 2) >> 4 * (index % 2) & 15;
  }
  double Half(const std::string& name, int64_t index) const {
    const auto bits = Load<uint16_t>(name, index);
    return tensors_.at(name).dtype == "F16" ? kernels::HalfToFloat(bits)
                                            : kernels::Bf16ToFloat(bits);
  }
  static double E4m3(int code) {
    const int exponent = code >> 3 & 15;
    const double magnitude = exponent == 0
                                 ? std::ldexp(code & 7, -9)
                                 : std::ldexp(8 + (code & 7), exponent - 10);
    return (code & 0x80) != 0 ? -magnitude : magnitude;
  }
  static double E2m1(int code) {
    constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return (code & 8) != 0 ? -kValues[code & 7] : kValues[code];
  }
  double Compressed(const std::string& codes, WeightFormat format, int64_t row,
                    int64_t k) const {
    const std::string module(absl::StripSuffix(codes, "_packed"));
    const std::string scales = module + "_scale";
    const int64_t groups = Last(scales);
    if (format == WeightFormat::kMxfp4) {
      return E2m1(Nibble(codes, row * Last(codes) * 2 + k)) *
             std::exp2(Byte(scales, row * groups + k / 32) - 127);
    }
    const int64_t cols = Last(codes) * 8;
    const int64_t group = k / (cols / groups);
    double zero = 8;
    const std::string zeros = module + "_zero_point";
    if (tensors_.count(zeros) > 0) {
      zero =
          Load<uint32_t>(zeros, row / 8 * groups + group) >> 4 * (row % 8) & 15;
    }
    return (Nibble(codes, row * cols + k) - zero) *
           Half(scales, row * groups + group);
  }
  double Mlx(const std::string& codes, WeightFormat format, int64_t row,
             int64_t k) const {
    const std::string module(absl::StripSuffix(codes, "weight"));
    const std::string scales = module + "scales";
    const int64_t groups = Last(scales);
    const bool eight =
        format == WeightFormat::kMlx8 || format == WeightFormat::kMlx8F16;
    const int64_t cols = Last(codes) * (eight ? 4 : 8);
    const int code =
        eight ? Byte(codes, row * cols + k) : Nibble(codes, row * cols + k);
    const int64_t group = row * groups + k / (cols / groups);
    if (format == WeightFormat::kMxfp4) {
      return E2m1(code) * std::exp2(Byte(scales, group) - 127);
    }
    return code * Half(scales, group) + Half(module + "biases", group);
  }

  std::map<std::string, TinySafetensor> tensors_;
};

TEST(QuantisedCheckpoint, ValuesAreThoseOfTheParts) {
  for (const TinyModel& model : AllPacked()) {
    SCOPED_TRACE(NameOf(model));
    TempDir dir;
    WriteTinyFolder(model, dir.path());
    const auto checkpoint = MustOpen(dir.path());
    ASSERT_NE(checkpoint, nullptr);
    const Meaning meaning(TinySafetensors(model));
    std::map<std::string, int64_t> rows_before;  // of slices of one stack
    int packed = 0;
    ForEachTensor(checkpoint->spec(), [&](const TensorUse& use) {
      if (use.matrix == nullptr || ::testing::Test::HasFailure()) {
        return;
      }
      packed += use.format == model.format ? 1 : 0;
      const std::string& name = use.source->name;
      std::vector<float> row(static_cast<size_t>(use.cols));
      for (int64_t r = 0; r < use.rows; ++r) {
        const auto stored = ReadRows(*checkpoint, *use.matrix, r, 1);
        kernels::DecodeStoredRow(use.format, stored.data(), use.cols,
                                 row.data());
        for (int64_t k = 0; k < use.cols; ++k) {
          ASSERT_EQ(row[static_cast<size_t>(k)],
                    static_cast<float>(meaning.Element(
                        name, use.format, rows_before[name] + r, k)))
              << name << " row " << r << " column " << k;
        }
      }
      rows_before[name] += use.rows;
    });
    const bool moe = model.family == TinyFamily::kQwen3Moe;
    EXPECT_GE(packed, model.mxfp4 == TinyMxfp4::kStacks ? 2 * 4 * 3
                      : moe                             ? 2 * (4 + 4 * 3)
                                                        : 2 * 7);
  }
}

TEST(QuantisedCheckpoint, AnyRowsReadTheSame) {
  for (const TinyModel& model : AllPacked()) {
    SCOPED_TRACE(NameOf(model));
    TempDir dir;
    WriteTinyFolder(model, dir.path());
    const auto checkpoint = MustOpen(dir.path());
    ASSERT_NE(checkpoint, nullptr);
    ForEachTensor(checkpoint->spec(), [&](const TensorUse& use) {
      if (use.matrix == nullptr) {
        return;
      }
      const Matrix& matrix = *use.matrix;
      const auto whole = ReadRows(*checkpoint, matrix, 0, use.rows);
      const int64_t bytes = kernels::StoredRowBytes(use.format, use.cols);
      for (const int64_t begin : {int64_t{0}, int64_t{1}, use.rows / 2 + 1}) {
        for (const int64_t end : {begin + 1, use.rows - 1, use.rows}) {
          if (begin >= end || end > use.rows) {
            continue;
          }
          EXPECT_EQ(ReadRows(*checkpoint, matrix, begin, end - begin),
                    std::vector<std::byte>(whole.begin() + begin * bytes,
                                           whole.begin() + end * bytes))
              << use.source->name << " rows " << begin << " to " << end;
        }
      }
    });
  }
}

TEST(QuantisedCheckpoint, ConfigAlonePlansTheSameBytes) {
  for (const TinyModel& model : AllPacked()) {
    if (model.mxfp4 == TinyMxfp4::kStacks) {
      continue;  // a configuration does not say how experts are stored
    }
    SCOPED_TRACE(NameOf(model));
    TempDir dir;
    WriteTinyFolder(model, dir.path());
    const auto checkpoint = MustOpen(dir.path());
    ASSERT_NE(checkpoint, nullptr);
    const PartCosts costs = CostsOf(checkpoint->spec());
    const auto assumed = SpecFromConfig(dir.File("config.json"));
    ASSERT_TRUE(assumed.ok()) << assumed.status();
    EXPECT_EQ(CostsOf(*assumed).tile_bytes, costs.tile_bytes);
    int64_t shapes = 0;
    int64_t all = 0;
    for (const TinySafetensor& tensor : TinySafetensors(model)) {
      all += static_cast<int64_t>(tensor.data.size());
      shapes += tensor.dtype == "I64" ? 16 : 0;
    }
    EXPECT_EQ(CostsOf(*assumed).stored_bytes, costs.stored_bytes - shapes);
    // Nothing in the file belongs to no weight.
    EXPECT_EQ(costs.stored_bytes, all);
  }
}

TEST(QuantisedCheckpoint, PartsMayLieInSeveralFiles) {
  TinyModel model = Packed(TinyFamily::kQwen3Moe, WeightFormat::kInt4Zero);
  model.num_shards = 7;
  TempDir dir;
  WriteTinyFolder(model, dir.path());
  const auto checkpoint = MustOpen(dir.path());
  ASSERT_NE(checkpoint, nullptr);
  const auto check = CheckWeights(*checkpoint, [](int64_t) { return true; });
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_THAT(check->damage, IsEmpty());
  EXPECT_EQ(check->bytes, CostsOf(checkpoint->spec()).stored_bytes);
}

using Change = std::function<void(std::vector<TinySafetensor>&)>;

TinySafetensor& Named(std::vector<TinySafetensor>& tensors,
                      const std::string& name) {
  for (TinySafetensor& tensor : tensors) {
    if (tensor.name == name) {
      return tensor;
    }
  }
  ADD_FAILURE() << name << " is not there";
  return tensors.front();
}

constexpr char kUp[] = "model.layers.1.mlp.up_proj";

std::string Up(const char* part) { return absl::StrCat(kUp, part); }

// The tensor gets another shape, with bytes that fit it.
Change Shape(const std::string& name, std::vector<int64_t> shape,
             size_t bytes) {
  return [=](std::vector<TinySafetensor>& tensors) {
    TinySafetensor& tensor = Named(tensors, name);
    tensor.shape = shape;
    tensor.data.resize(bytes);
  };
}
Change Dtype(const std::string& name, const std::string& dtype) {
  return [=](std::vector<TinySafetensor>& tensors) {
    Named(tensors, name).dtype = dtype;
  };
}
Change Rename(const std::string& name, const std::string& other) {
  return [=](std::vector<TinySafetensor>& tensors) {
    Named(tensors, name).name = other;
  };
}

absl::Status OpenChanged(const TinyModel& model, const Change& change) {
  std::vector<TinySafetensor> tensors = TinySafetensors(model);
  change(tensors);
  TempDir dir;
  dir.Write("config.json", TinyConfigJson(model));
  dir.Write("model.safetensors", SafetensorsFile(tensors));
  return Checkpoint::Open(dir.path()).status();
}

struct Damaged {
  WeightFormat format;
  Change change;
  std::string must_say;
};

TEST(QuantisedCheckpoint, RefusesPartsThatDoNotFit) {
  const std::string scale = Up(".weight_scale");
  const std::string packed = Up(".weight_packed");
  const std::string zeros = Up(".weight_zero_point");
  const std::string fp8_scale = Up(".weight_scale_inv");
  for (const Damaged& damaged : std::vector<Damaged>{
           {WeightFormat::kInt4, Rename(scale, "x"), scale},
           {WeightFormat::kInt4, Rename(packed, "x"), kUp},
           {WeightFormat::kInt4, Dtype(packed, "U32"), packed},
           {WeightFormat::kInt4, Dtype(scale, "I16"), scale},
           {WeightFormat::kInt4, Shape(scale, {96, 1}, 192), scale},
           {WeightFormat::kInt4, Shape(packed, {96, 4}, 96 * 16), packed},
           {WeightFormat::kInt4, Shape(packed, {96, 0}, 0), packed},
           {WeightFormat::kInt4, Shape(Up(".weight_shape"), {1}, 8),
            Up(".weight_shape")},
           {WeightFormat::kInt4, Dtype(Up(".weight_shape"), "F64"),
            Up(".weight_shape")},
           {WeightFormat::kInt4,
            Rename(Up(".weight_shape"), Up(".weight_g_idx")), "weight_g_idx"},
           {WeightFormat::kInt4,
            Rename(Up(".weight_shape"), Up(".weight_zero_point")),
            "weight_zero_point"},
           {WeightFormat::kInt4,
            Rename("lm_head.weight", "lm_head.weight_packed"),
            "config.json says that it is not"},
           {WeightFormat::kInt4, Rename(Up(".weight_shape"), Up(".weight")),
            "stands beside tensors of its packed form"},
           {WeightFormat::kMlx4,
            Rename("model.layers.1.mlp.gate_proj.scales", "model.norm.scales"),
            "gate_proj.scales"},
           {WeightFormat::kInt4Zero, Rename(zeros, "x"), zeros},
           {WeightFormat::kInt4Zero, Shape(zeros, {96, 2}, 96 * 8), zeros},
           {WeightFormat::kInt4Zero, Dtype(zeros, "F32"), zeros},
           {WeightFormat::kMxfp4, Dtype(scale, "I8"), scale},
           {WeightFormat::kMxfp4, Dtype(packed, "I8"), packed},
           {WeightFormat::kFp8, Rename(fp8_scale, "x"), fp8_scale},
           {WeightFormat::kFp8, Dtype(fp8_scale, "I32"), fp8_scale},
           {WeightFormat::kFp8, Shape(fp8_scale, {1, 4}, 16), fp8_scale},
           {WeightFormat::kFp8, Dtype(Up(".weight"), "F8_E5M2"), "F8_E5M2"},
           {WeightFormat::kMlx4, Rename(Up(".biases"), "x"), Up(".biases")},
           {WeightFormat::kMlx4, Rename(Up(".scales"), "x"), Up(".scales")},
           {WeightFormat::kMlx4, Rename(Up(".weight"), "x"), Up(".weight")},
           {WeightFormat::kMlx4, Dtype(Up(".biases"), "F16"), Up(".biases")},
           {WeightFormat::kMlx8, Shape(Up(".weight"), {96, 8}, 96 * 32),
            Up(".weight")},
       }) {
    const absl::Status status =
        OpenChanged(Packed(TinyFamily::kLlama, damaged.format), damaged.change);
    ASSERT_FALSE(status.ok()) << damaged.must_say;
    EXPECT_EQ(ExitCodeOf(status), 4);
    EXPECT_THAT(std::string(status.message()), HasSubstr(damaged.must_say));
  }
}

TEST(QuantisedCheckpoint, RefusesGroupsThatDoNotDivideTheRows) {
  TinyModel model = Packed(TinyFamily::kLlama, WeightFormat::kInt4);
  std::string config = TinyConfigJson(model);
  const size_t at = config.find("\"group_size\": 32");
  ASSERT_NE(at, std::string::npos);
  config.replace(at, 16, "\"group_size\": 4194304");
  TempDir dir;
  WriteTinyFolder(model, dir.path());
  dir.Write("config.json", config);
  const absl::Status status = Checkpoint::Open(dir.path()).status();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("group_size 4194304"));
}

// Damage inside tensors is found where they are read.
WeightsCheck CheckChanged(const TinyModel& model, const Change& change) {
  std::vector<TinySafetensor> tensors = TinySafetensors(model);
  change(tensors);
  TempDir dir;
  dir.Write("config.json", TinyConfigJson(model));
  dir.Write("model.safetensors", SafetensorsFile(tensors));
  const auto checkpoint = MustOpen(dir.path());
  return *CheckWeights(*checkpoint, [](int64_t) { return true; });
}

TEST(QuantisedCheckpoint, FindsCodesAndScalesThatAreNoNumbers) {
  struct Place {
    WeightFormat format;
    std::string tensor;
    size_t offset;
    std::string bytes;
    const char* why;
  };
  for (const Place& place : std::vector<Place>{
           {WeightFormat::kFp8, Up(".weight"), 5 * 200 + 7, "\x7f",
            "row 5 column 7 "},
           {WeightFormat::kFp8, Up(".weight"), 5 * 200 + 7, "\xff",
            "row 5 column 7 "},
           {WeightFormat::kFp8, Up(".weight_scale_inv"), 12,
            std::string("\0\0\x80\x7f", 4), "row 128 column 128 "},
           {WeightFormat::kMxfp4, Up(".weight_scale"), 3, "\xff",
            "row 1 column 32 "},
           {WeightFormat::kInt4, Up(".weight_scale"), 6,
            std::string("\x80\x7f", 2), "row 1 column 32 "},
           {WeightFormat::kMlx8, Up(".biases"), 6, std::string("\x80\x7f", 2),
            "row 1 column 32 "},
           {WeightFormat::kInt4, Up(".weight_shape"), 0, "\x5f",
            "holds [95, 64]"},
       }) {
    const WeightsCheck check = CheckChanged(
        Packed(TinyFamily::kLlama, place.format), [&](auto& tensors) {
          Named(tensors, place.tensor)
              .data.replace(place.offset, place.bytes.size(), place.bytes);
        });
    ASSERT_EQ(check.damage.size(), 1u) << place.tensor;
    EXPECT_THAT(check.damage[0].tensor, HasSubstr(kUp));
    EXPECT_THAT(check.damage[0].why, HasSubstr(place.why));
  }
}

}  // namespace
}  // namespace millrace::model
