#include "model/checkpoint/safetensors_file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"

namespace millrace::model {
namespace {

using kernels::WeightFormat;

// The format's own limit.
constexpr uint64_t kHeaderBytesMax = 100'000'000;
// Real checkpoints have at most 4; more has no use here.
constexpr size_t kDimensionsMax = 16;

struct Dtype {
  const char* name;
  int bits;
  std::optional<WeightFormat> format;
};

constexpr Dtype kDtypes[] = {
    {"F32", 32, WeightFormat::kF32},   {"F16", 16, WeightFormat::kF16},
    {"BF16", 16, WeightFormat::kBf16}, {"BOOL", 8, std::nullopt},
    {"U8", 8, std::nullopt},           {"I8", 8, std::nullopt},
    {"F4", 4, std::nullopt},           {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},      {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},      {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},  {"F8_E5M2FNUZ", 8, std::nullopt},
    {"I16", 16, std::nullopt},         {"U16", 16, std::nullopt},
    {"I32", 32, std::nullopt},         {"U32", 32, std::nullopt},
    {"C64", 64, std::nullopt},         {"F64", 64, std::nullopt},
    {"I64", 64, std::nullopt},         {"U64", 64, std::nullopt},
};

const Dtype* FindDtype(absl::string_view name) {
  for (const Dtype& dtype : kDtypes) {
    if (name == dtype.name) {
      return &dtype;
    }
  }
  return nullptr;
}

// Unset unless `value` is a list of whole numbers >= 0 below 2^63.
std::optional<std::vector<int64_t>> Counts(const Json* value, size_t max) {
  if (value == nullptr || !value->is_array() ||
      value->get_array().size() > max) {
    return std::nullopt;
  }
  std::vector<int64_t> out;
  for (const Json& item : value->get_array()) {
    if (!item.is_int64() || item.get_int64() < 0) {
      return std::nullopt;
    }
    out.push_back(item.get_int64());
  }
  return out;
}

// Bytes of a tensor of this shape; unset where they overflow or are no whole
// number.
std::optional<int64_t> ShapeBytes(const std::vector<int64_t>& shape, int bits) {
  int64_t total_bits = bits;
  for (const int64_t size : shape) {
    if (size == 0) {
      return 0;
    }
    if (total_bits > INT64_MAX / size) {
      return std::nullopt;
    }
    total_bits *= size;
  }
  if (total_bits % 8 != 0) {
    return std::nullopt;
  }
  return total_bits / 8;
}

class HeaderReader {
 public:
  explicit HeaderReader(const RandomAccessFile& file)
      : file_(file),
        object_(absl::StrCat(Printable(file.path(), 512), ": header")) {}

  absl::StatusOr<SafetensorsHeader> Read();

 private:
  absl::StatusOr<std::string> ReadText();
  absl::StatusOr<StoredTensor> ReadEntry(const std::string& name,
                                         const Json& value);
  absl::Status CheckOverlaps() const;
  absl::Status FindGap() const;
  [[nodiscard]] absl::Status ErrorAt(absl::string_view tensor,
                                     absl::string_view what) const {
    return InputError(Printable(file_.path(), 512),
                      absl::StrCat("tensor '", Printable(tensor), "': ", what));
  }

  const RandomAccessFile& file_;
  const std::string object_;
  int64_t data_bytes_ = 0;
  SafetensorsHeader out_;
};

absl::StatusOr<std::string> HeaderReader::ReadText() {
  constexpr char kHint[] =
      "the file is cut short or damaged: copy or download it again";
  if (file_.size() < 8) {
    return InputError(object_,
                      absl::StrCat("the file has ", file_.size(),
                                   " bytes, too few for a safetensors file"),
                      kHint);
  }
  uint64_t length = 0;
  MILLRACE_RETURN_IF_ERROR(
      file_.Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(&length), 8)));
  if (length > kHeaderBytesMax ||
      static_cast<int64_t>(length) > file_.size() - 8) {
    return InputError(object_,
                      absl::StrCat("says it is ", length,
                                   " bytes long, the file has ", file_.size()),
                      kHint);
  }
  out_.header_bytes = 8 + static_cast<int64_t>(length);
  data_bytes_ = file_.size() - out_.header_bytes;
  std::string text(static_cast<size_t>(length), '\0');
  MILLRACE_RETURN_IF_ERROR(file_.Read(
      8,
      absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size())));
  if (text.empty() || text[0] != '{') {
    return InputError(object_, "does not begin with '{'",
                      "is this a safetensors file?");
  }
  return text;
}

absl::StatusOr<StoredTensor> HeaderReader::ReadEntry(const std::string& name,
                                                     const Json& value) {
  if (!value.is_object()) {
    return ErrorAt(name, "its header entry is no object");
  }
  const auto& entry = value.get_object();
  const Json* dtype_name = entry.if_contains("dtype");
  if (dtype_name == nullptr || !dtype_name->is_string()) {
    return ErrorAt(name, "has no dtype");
  }
  StoredTensor tensor;
  tensor.name = name;
  tensor.type = std::string(dtype_name->get_string());
  const Dtype* dtype = FindDtype(tensor.type);
  if (dtype == nullptr) {
    return ErrorAt(name, absl::StrCat("has the unknown dtype '",
                                      Printable(tensor.type), "'"));
  }
  tensor.format = dtype->format;
  auto shape = Counts(entry.if_contains("shape"), kDimensionsMax);
  if (!shape.has_value()) {
    return ErrorAt(name, "its shape is missing or no list of sizes");
  }
  tensor.shape = *std::move(shape);
  const auto offsets = Counts(entry.if_contains("data_offsets"), 2);
  if (!offsets.has_value() || offsets->size() != 2) {
    return ErrorAt(name,
                   "its data_offsets are missing or not two whole numbers");
  }
  const int64_t begin = (*offsets)[0];
  const int64_t end = (*offsets)[1];
  if (begin > end || end > data_bytes_) {
    return ErrorAt(name, absl::StrCat("its data_offsets ", begin, " to ", end,
                                      " do not lie in the ", data_bytes_,
                                      " bytes behind the header"));
  }
  const auto bytes = ShapeBytes(tensor.shape, dtype->bits);
  if (!bytes.has_value() || *bytes != end - begin) {
    return ErrorAt(
        name, absl::StrCat("its ", end - begin,
                           " bytes do not fit its shape in ", tensor.type));
  }
  tensor.offset = out_.header_bytes + begin;
  tensor.bytes = *bytes;
  return tensor;
}

// Tensors are sorted by offset.
absl::Status HeaderReader::CheckOverlaps() const {
  const auto& tensors = out_.tensors;
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i - 1].offset + tensors[i - 1].bytes > tensors[i].offset) {
      return ErrorAt(tensors[i].name,
                     absl::StrCat("overlaps tensor '",
                                  Printable(tensors[i - 1].name), "'"));
    }
  }
  return absl::OkStatus();
}

absl::Status HeaderReader::FindGap() const {
  int64_t at = out_.header_bytes;
  for (const StoredTensor& tensor : out_.tensors) {
    if (tensor.offset != at) {
      return ErrorAt(tensor.name,
                     absl::StrCat("begins ", tensor.offset - at,
                                  " bytes behind the end of what is before "
                                  "it; tensors must follow without a gap"));
    }
    at += tensor.bytes;
  }
  if (at != file_.size()) {
    return InputError(Printable(file_.path(), 512),
                      absl::StrCat("has ", file_.size() - at,
                                   " bytes behind the last tensor"),
                      "the file is damaged: copy or download it again");
  }
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsHeader> HeaderReader::Read() {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text, ReadText());
  JsonLimits limits;
  limits.depth_max = 8;
  MILLRACE_ASSIGN_OR_RETURN(const Json header,
                            ParseJson(text, object_, limits));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject object,
                            JsonObject::From(header, object_));
  out_.tensors.reserve(object.raw().size());
  for (const auto& member : object.raw()) {
    const std::string name(member.key());
    if (name == "__metadata__") {
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(StoredTensor tensor,
                              ReadEntry(name, member.value()));
    out_.tensors.push_back(std::move(tensor));
  }
  std::sort(out_.tensors.begin(), out_.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return a.offset != b.offset ? a.offset < b.offset
                                          : a.bytes < b.bytes;
            });
  MILLRACE_RETURN_IF_ERROR(CheckOverlaps());
  out_.gap = FindGap();
  return std::move(out_);
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(
    const RandomAccessFile& file) {
  return HeaderReader(file).Read();
}

}  // namespace millrace::model
