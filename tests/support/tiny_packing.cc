#include "tests/support/tiny_packing.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "kernels/quant/half.h"
#include "tests/support/tiny_layout.h"
#include "tests/support/tiny_weights.h"

namespace millrace::testing {
namespace {

using kernels::WeightFormat;

enum class Method { kNone, kFp8, kInt4, kMxfp4, kMlx, kStacks };

Method MethodOf(const TinyModel& model) {
  switch (model.format) {
    case WeightFormat::kFp8:
      return Method::kFp8;
    case WeightFormat::kInt4:
    case WeightFormat::kInt4F16:
    case WeightFormat::kInt4Zero:
    case WeightFormat::kInt4ZeroF16:
      return Method::kInt4;
    case WeightFormat::kMlx4:
    case WeightFormat::kMlx4F16:
    case WeightFormat::kMlx8:
    case WeightFormat::kMlx8F16:
      return Method::kMlx;
    case WeightFormat::kMxfp4:
      return model.mxfp4 == TinyMxfp4::kMlx      ? Method::kMlx
             : model.mxfp4 == TinyMxfp4::kStacks ? Method::kStacks
                                                 : Method::kMxfp4;
    default:
      return Method::kNone;
  }
}

bool HasZeroPoints(WeightFormat format) {
  return format == WeightFormat::kInt4Zero ||
         format == WeightFormat::kInt4ZeroF16;
}

bool IsHalf(WeightFormat format) {
  return TinyPlainFormat(format) == WeightFormat::kF16;
}

const char* DtypeOf(WeightFormat format) {
  return format == WeightFormat::kF32   ? "F32"
         : format == WeightFormat::kF16 ? "F16"
                                        : "BF16";
}

// Stored rows of a matrix, or of all matrices of a stack.
std::vector<std::string> RowsOf(const TinyTensor& tensor, WeightFormat format) {
  std::vector<std::string> rows;
  for (const TinyRows& part : tensor.parts) {
    for (int64_t row = 0; row < tensor.rows_per_part; ++row) {
      rows.push_back(TinyRow(part, format, row));
    }
  }
  return rows;
}

std::string Joined(const std::vector<std::string>& rows) {
  std::string out;
  for (const std::string& row : rows) {
    out += row;
  }
  return out;
}

// Codes, scales and offsets of the rows of one tensor.
struct Split {
  std::string codes;
  std::string scales;
  std::string offsets;
};

// Halves back to pairs: element 2b of a block in the low nibble of byte b.
void AppendPairs(const char* halves, std::string& out) {
  const auto element = [halves](int i) {
    const auto byte = static_cast<uint8_t>(halves[i % 16]);
    return i < 16 ? byte & 15 : byte >> 4;
  };
  for (int b = 0; b < 16; ++b) {
    out.push_back(static_cast<char>(element(2 * b) | element(2 * b + 1) << 4));
  }
}

void SplitBlocks(WeightFormat format, int64_t group_size,
                 const std::string& row, Split& out) {
  const auto block = static_cast<size_t>(kernels::TraitsOf(format).block_bytes);
  const bool mxfp4 = format == WeightFormat::kMxfp4;
  const bool offsets = !mxfp4 && format != WeightFormat::kInt4 &&
                       format != WeightFormat::kInt4F16;
  const size_t scale_bytes = mxfp4 ? 1 : 2;
  const size_t codes_at = scale_bytes + (offsets ? 2 : 0);
  for (size_t i = 0; i * block < row.size(); ++i) {
    const char* from = row.data() + i * block;
    if (static_cast<int64_t>(i) * 32 % group_size == 0) {
      out.scales.append(from, scale_bytes);
      out.offsets.append(from + scale_bytes, offsets ? 2 : 0);
    }
    if (mxfp4) {
      AppendPairs(from + codes_at, out.codes);
    } else {
      out.codes.append(from + codes_at, block - codes_at);
    }
  }
}

// Zero points as numbers, row after row, into words of eight rows.
std::string PackedZeros(WeightFormat format, const std::string& numbers,
                        int64_t rows, int64_t groups) {
  std::vector<uint32_t> words(static_cast<size_t>((rows + 7) / 8 * groups));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t group = 0; group < groups; ++group) {
      uint16_t bits = 0;
      std::memcpy(&bits, numbers.data() + (row * groups + group) * 2, 2);
      const float zero = IsHalf(format) ? kernels::HalfToFloat(bits)
                                        : kernels::Bf16ToFloat(bits);
      words[static_cast<size_t>(row / 8 * groups + group)] |=
          static_cast<uint32_t>(zero) << 4 * (row % 8);
    }
  }
  std::string out(words.size() * 4, '\0');
  std::memcpy(out.data(), words.data(), out.size());
  return out;
}

std::string ShapeBytes(const std::vector<int64_t>& shape) {
  std::string out(16, '\0');
  std::memcpy(out.data(), shape.data(), out.size());
  return out;
}

class Packer {
 public:
  explicit Packer(const TinyModel& model)
      : model_(model), method_(MethodOf(model)) {}

  std::vector<TinySafetensor> Pack() {
    for (TinyTensor& tensor : TinyTensors(model_, method_ == Method::kMlx)) {
      if (tensor.shape.size() == 1 || !Packs(tensor)) {
        AddPlain(tensor);
      } else if (method_ == Method::kFp8) {
        AddFp8(tensor);
      } else {
        AddGroups(std::move(tensor));
      }
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool Packs(const TinyTensor& tensor) const {
    switch (method_) {
      case Method::kNone:
        return false;
      case Method::kMlx:
        return true;
      case Method::kStacks:
        return tensor.shape.size() == 3;
      default:
        return !tensor.router && !absl::StrContains(tensor.name, "embed") &&
               !absl::StrContains(tensor.name, "lm_head");
    }
  }
  void Add(const std::string& name, const char* dtype,
           std::vector<int64_t> shape, std::string data) {
    out_.push_back({name, dtype, std::move(shape), std::move(data)});
  }
  void AddPlain(const TinyTensor& tensor) {
    const WeightFormat plain = TinyPlainFormat(model_.format);
    Add(tensor.name, DtypeOf(plain), tensor.shape,
        Joined(RowsOf(tensor, plain)));
  }
  void AddFp8(const TinyTensor& tensor) {
    const int64_t cols = tensor.shape[1];
    const int64_t blocks = (cols + 127) / 128;
    const auto scale_bytes = static_cast<size_t>(4 * blocks);
    const std::vector<std::string> rows = RowsOf(tensor, model_.format);
    std::string codes;
    std::string scales;
    for (size_t row = 0; row < rows.size(); ++row) {
      codes += rows[row].substr(scale_bytes);
      scales += row % 128 == 0 ? rows[row].substr(0, scale_bytes) : "";
    }
    Add(tensor.name, "F8_E4M3", tensor.shape, std::move(codes));
    Add(tensor.name + "_scale_inv", "F32",
        {(tensor.shape[0] + 127) / 128, blocks}, std::move(scales));
  }
  void AddGroups(TinyTensor tensor);
  void AddInt4(const std::string& module, const std::vector<int64_t>& shape,
               Split split);
  void AddMlx(const std::string& module, WeightFormat format,
              std::vector<int64_t> shape, Split split);

  const TinyModel& model_;
  const Method method_;
  std::vector<TinySafetensor> out_;
};

void Packer::AddGroups(TinyTensor tensor) {
  // Routers of MLX checkpoints keep eight bits.
  const bool mlx8 = method_ == Method::kMlx && tensor.router &&
                    model_.format != WeightFormat::kMxfp4;
  const WeightFormat format =
      !mlx8 ? model_.format
            : (IsHalf(model_.format) ? WeightFormat::kMlx8F16
                                     : WeightFormat::kMlx8);
  Split split;
  for (const std::string& row : RowsOf(tensor, format)) {
    SplitBlocks(format, model_.group_size, row, split);
  }
  std::vector<int64_t>& shape = tensor.shape;
  const std::string module(absl::StripSuffix(tensor.name, ".weight"));
  if (method_ == Method::kInt4) {
    AddInt4(module, shape, std::move(split));
  } else if (method_ == Method::kMlx) {
    AddMlx(absl::StrReplaceAll(module, {{"mlp.experts.", "mlp.switch_mlp."}}),
           format, shape, std::move(split));
  } else if (method_ == Method::kStacks) {
    Add(module + "_blocks", "U8", {shape[0], shape[1], shape[2] / 32, 16},
        std::move(split.codes));
    Add(module + "_scales", "U8", {shape[0], shape[1], shape[2] / 32},
        std::move(split.scales));
  } else {
    Add(module + ".weight_packed", "U8", {shape[0], shape[1] / 2},
        std::move(split.codes));
    Add(module + ".weight_scale", "U8", {shape[0], shape[1] / 32},
        std::move(split.scales));
  }
}

void Packer::AddInt4(const std::string& module,
                     const std::vector<int64_t>& shape, Split split) {
  const int64_t groups = shape[1] / model_.group_size;
  Add(module + ".weight_packed", "I32", {shape[0], shape[1] / 8},
      std::move(split.codes));
  Add(module + ".weight_scale", DtypeOf(TinyPlainFormat(model_.format)),
      {shape[0], groups}, std::move(split.scales));
  Add(module + ".weight_shape", "I64", {2}, ShapeBytes(shape));
  if (HasZeroPoints(model_.format)) {
    Add(module + ".weight_zero_point", "I32", {(shape[0] + 7) / 8, groups},
        PackedZeros(model_.format, split.offsets, shape[0], groups));
  }
}

void Packer::AddMlx(const std::string& module, WeightFormat format,
                    std::vector<int64_t> shape, Split split) {
  const int64_t cols = shape.back();
  const int64_t bits =
      format == WeightFormat::kMlx8 || format == WeightFormat::kMlx8F16 ? 8 : 4;
  shape.back() = cols * bits / 32;
  Add(module + ".weight", "U32", shape, std::move(split.codes));
  shape.back() = cols / model_.group_size;
  const bool mxfp4 = format == WeightFormat::kMxfp4;
  const char* dtype = mxfp4 ? "U8" : DtypeOf(TinyPlainFormat(format));
  Add(module + ".scales", dtype, shape, std::move(split.scales));
  if (!mxfp4) {
    Add(module + ".biases", dtype, shape, std::move(split.offsets));
  }
}

std::string CompressedTensors(const TinyModel& model, bool mxfp4) {
  const std::string weights =
      mxfp4 ? R"("num_bits": 4, "type": "float", "group_size": 32)"
            : absl::StrCat(R"("num_bits": 4, "type": "int", "group_size": )",
                           model.group_size);
  return absl::StrCat(
      R"(, "quantization_config": {"quant_method": "compressed-tensors", )"
      R"("format": ")",
      mxfp4 ? "mxfp4-pack-quantized" : "pack-quantized",
      R"(", "config_groups": {"group_0": {"targets": ["Linear"], )"
      R"("input_activations": null, "weights": {)",
      weights, R"(, "strategy": "group", "dynamic": false, "symmetric": )",
      HasZeroPoints(model.format) ? "false" : "true",
      R"(}}}, "ignore": ["lm_head", "re:.*mlp\\.gate$"]})");
}

std::string Fp8(const TinyModel& model) {
  std::string kept = R"("lm_head")";
  for (int64_t layer = 0; layer < model.num_layers; ++layer) {
    absl::StrAppend(&kept, R"(, "model.layers.)", layer, R"(.mlp.gate")");
  }
  return absl::StrCat(
      R"(, "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", )"
      R"("activation_scheme": "dynamic", "weight_block_size": [128, 128], )"
      R"("modules_to_not_convert": [)",
      kept, "]}");
}

std::string Mlx(const TinyModel& model) {
  if (model.format == WeightFormat::kMxfp4) {
    return R"(, "quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"})";
  }
  const bool eight = model.format == WeightFormat::kMlx8 ||
                     model.format == WeightFormat::kMlx8F16;
  std::string out =
      absl::StrCat(R"(, "quantization": {"group_size": )", model.group_size,
                   R"(, "bits": )", eight ? 8 : 4);
  for (int64_t layer = 0; layer < model.num_layers; ++layer) {
    absl::StrAppend(&out, R"(, "model.layers.)", layer,
                    R"(.mlp.gate": {"bits": 8, "group_size": )",
                    model.group_size, "}");
  }
  return out + "}";
}

}  // namespace

WeightFormat TinyPlainFormat(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
      return format;
    case WeightFormat::kInt4F16:
    case WeightFormat::kInt4ZeroF16:
    case WeightFormat::kMlx4F16:
    case WeightFormat::kMlx8F16:
      return WeightFormat::kF16;
    default:
      return WeightFormat::kBf16;
  }
}

std::string TinyQuantisationFields(const TinyModel& model) {
  switch (MethodOf(model)) {
    case Method::kNone:
      return "";
    case Method::kFp8:
      return Fp8(model);
    case Method::kInt4:
      return CompressedTensors(model, false);
    case Method::kMxfp4:
      return CompressedTensors(model, true);
    case Method::kMlx:
      return Mlx(model);
    case Method::kStacks:
      return R"(, "quantization_config": {"quant_method": "mxfp4"})";
  }
  return "";
}

std::vector<WeightFormat> PackedFormats() {
  return {WeightFormat::kFp8,         WeightFormat::kInt4,
          WeightFormat::kInt4F16,     WeightFormat::kInt4Zero,
          WeightFormat::kInt4ZeroF16, WeightFormat::kMxfp4,
          WeightFormat::kMlx4,        WeightFormat::kMlx4F16,
          WeightFormat::kMlx8,        WeightFormat::kMlx8F16};
}

std::vector<TinySafetensor> TinySafetensors(const TinyModel& model) {
  return Packer(model).Pack();
}

}  // namespace millrace::testing
