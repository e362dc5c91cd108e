// The walk over the bytes of a GGUF file; values are read through gguf_file.cc.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/checkpoint/gguf_cursor.h"
#include "model/checkpoint/gguf_file.h"

namespace millrace::model {
namespace {

// Far above what files in use have (a key name is below 100 bytes, a tensor
// name below 64, a vocabulary below 2^20 tokens), and small enough that a
// hostile file cannot make the reader hold gigabytes.
constexpr uint64_t kKeyBytesMax = 65535;
constexpr uint64_t kTensorNameBytesMax = 255;
constexpr uint64_t kStringBytesMax = uint64_t{64} << 20;
constexpr uint64_t kArrayStringsMax = uint64_t{1} << 22;
constexpr int64_t kMetadataBytesMax = int64_t{512} << 20;
constexpr int64_t kAlignmentMax = int64_t{1} << 30;
// Smallest entries: empty name, one byte of value; empty name, one dimension.
constexpr int64_t kKeyBytesMin = 8 + 4 + 1;
constexpr int64_t kTensorBytesMin = 8 + 4 + 8 + 4 + 8;

// 0 for types without a fixed size or unknown ones.
int64_t ScalarBytes(uint32_t type) {
  switch (static_cast<GgufType>(type)) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    default:
      return 0;
  }
}

// Bytes of a tensor, or -1 where they exceed `bytes_max`. Rows are whole
// blocks.
int64_t TensorBytes(const GgmlType& type, const std::vector<int64_t>& ne,
                    int64_t bytes_max) {
  int64_t bytes = ne[0] / type.block_elements;
  if (bytes > bytes_max / type.block_bytes) {
    return -1;
  }
  bytes *= type.block_bytes;
  for (size_t i = 1; i < ne.size(); ++i) {
    if (bytes > bytes_max / ne[i]) {
      return -1;
    }
    bytes *= ne[i];
  }
  return bytes;
}

}  // namespace

// Fills one GgufFile from one file, front to back.
class GgufParser {
 public:
  GgufParser(const RandomAccessFile& file, GgufFile& out)
      : file_(file), cursor_(file), out_(out) {}

  absl::Status Parse(GgufFile::Extent extent) {
    MILLRACE_RETURN_IF_ERROR(ReadHeader(extent));
    for (uint64_t i = 0; i < num_keys_; ++i) {
      MILLRACE_RETURN_IF_ERROR(ReadKey(i));
    }
    out_.header_bytes_ = cursor_.position();
    if (extent == GgufFile::Extent::kMetadata) {
      return absl::OkStatus();
    }
    for (uint64_t i = 0; i < num_tensors_; ++i) {
      MILLRACE_RETURN_IF_ERROR(ReadTensor(i));
    }
    out_.header_bytes_ = cursor_.position();
    return PlaceTensors();
  }

 private:
  absl::Status ReadHeader(GgufFile::Extent extent);
  absl::Status ReadKey(uint64_t number);
  absl::Status ReadValue(uint32_t type, GgufValue& value);
  absl::Status ReadArray(GgufValue& value);
  absl::Status ReadTensor(uint64_t number);
  absl::Status ReadDimensions(GgufTensor& tensor);
  absl::Status PlaceTensors();
  absl::Status TensorError(const GgufTensor& tensor,
                           absl::string_view what) const {
    return InputError(
        Printable(file_.path(), 512),
        absl::StrCat("tensor '", Printable(tensor.name), "': ", what));
  }

  const RandomAccessFile& file_;
  GgufCursor cursor_;
  GgufFile& out_;
  uint64_t num_tensors_ = 0;
  uint64_t num_keys_ = 0;
};

absl::Status GgufParser::ReadHeader(GgufFile::Extent extent) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string magic, cursor_.Raw(4));
  if (magic != "GGUF") {
    return WithHint(
        cursor_.Error("is not a GGUF file: the magic bytes are wrong"),
        "give a GGUF file, or the directory of a Hugging Face checkpoint");
  }
  MILLRACE_ASSIGN_OR_RETURN(const uint32_t version, cursor_.U32());
  if (version != 0 && (version & 0xFFFF) == 0) {
    return WithHint(cursor_.Error("is big-endian GGUF, which is not supported"),
                    "convert the model on a little-endian machine");
  }
  if (version != 2 && version != 3) {
    return WithHint(
        cursor_.Error(absl::StrCat("version ", version,
                                   " is not supported; known are 2 and 3")),
        "convert the model again with a current llama.cpp");
  }
  MILLRACE_ASSIGN_OR_RETURN(num_tensors_, cursor_.U64());
  MILLRACE_ASSIGN_OR_RETURN(num_keys_, cursor_.U64());
  const uint64_t left = static_cast<uint64_t>(cursor_.remaining());
  if (num_keys_ > left / kKeyBytesMin) {
    return cursor_.Error(absl::StrCat("says it has ", num_keys_,
                                      " metadata keys, more than its ",
                                      file_.size(), " bytes can hold"));
  }
  if (extent == GgufFile::Extent::kWhole &&
      num_tensors_ > left / kTensorBytesMin) {
    return cursor_.Error(absl::StrCat("says it has ", num_tensors_,
                                      " tensors, more than its ", file_.size(),
                                      " bytes can hold"));
  }
  return absl::OkStatus();
}

absl::Status GgufParser::ReadKey(uint64_t number) {
  cursor_.set_subject(
      absl::StrCat("metadata key ", number + 1, " of ", num_keys_));
  MILLRACE_ASSIGN_OR_RETURN(std::string key, cursor_.String(kKeyBytesMax));
  if (key.empty()) {
    return cursor_.Error("has no name");
  }
  cursor_.set_subject(absl::StrCat("key '", Printable(key), "'"));
  MILLRACE_ASSIGN_OR_RETURN(const uint32_t type, cursor_.U32());
  GgufValue value;
  MILLRACE_RETURN_IF_ERROR(ReadValue(type, value));
  if (cursor_.position() > kMetadataBytesMax) {
    return cursor_.Error(absl::StrCat("the metadata are larger than the ",
                                      kMetadataBytesMax, " bytes allowed"));
  }
  if (!out_.values_.emplace(std::move(key), std::move(value)).second) {
    return cursor_.Error("is there twice");
  }
  return absl::OkStatus();
}

absl::Status GgufParser::ReadValue(uint32_t type, GgufValue& value) {
  value.type = static_cast<GgufType>(type);
  if (value.type == GgufType::kString) {
    MILLRACE_ASSIGN_OR_RETURN(value.bytes, cursor_.String(kStringBytesMax));
    return absl::OkStatus();
  }
  if (value.type == GgufType::kArray) {
    return ReadArray(value);
  }
  const int64_t bytes = ScalarBytes(type);
  if (bytes == 0) {
    return cursor_.Error(absl::StrCat("has the unknown value type ", type));
  }
  MILLRACE_ASSIGN_OR_RETURN(value.bytes,
                            cursor_.Raw(static_cast<uint64_t>(bytes)));
  if (value.type == GgufType::kBool &&
      static_cast<unsigned char>(value.bytes[0]) > 1) {
    return cursor_.Error("is a boolean that is neither 0 nor 1");
  }
  return absl::OkStatus();
}

absl::Status GgufParser::ReadArray(GgufValue& value) {
  MILLRACE_ASSIGN_OR_RETURN(const uint32_t element, cursor_.U32());
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t count, cursor_.U64());
  value.element = static_cast<GgufType>(element);
  const bool strings = value.element == GgufType::kString;
  const int64_t element_bytes = strings ? 8 : ScalarBytes(element);
  if (element_bytes == 0) {
    return cursor_.Error(absl::StrCat(
        "is an array of ", value.element == GgufType::kArray
                               ? std::string("arrays, which is not supported")
                               : absl::StrCat("the unknown type ", element)));
  }
  const uint64_t left = static_cast<uint64_t>(cursor_.remaining());
  if (count > left / static_cast<uint64_t>(element_bytes)) {
    return cursor_.Error(absl::StrCat(
        "an array of ", count, " elements does not fit the rest of the file, ",
        left, " bytes"));
  }
  const uint64_t raw_bytes = count * static_cast<uint64_t>(element_bytes);
  if (strings ? count > kArrayStringsMax
              : raw_bytes > static_cast<uint64_t>(kMetadataBytesMax)) {
    return cursor_.Error(absl::StrCat("an array of ", count,
                                      " elements is longer than allowed"));
  }
  value.count = static_cast<int64_t>(count);
  if (!strings) {
    MILLRACE_ASSIGN_OR_RETURN(value.bytes, cursor_.Raw(raw_bytes));
    return absl::OkStatus();
  }
  value.strings.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    MILLRACE_ASSIGN_OR_RETURN(std::string text,
                              cursor_.String(kStringBytesMax));
    value.strings.push_back(std::move(text));
    if (cursor_.position() > kMetadataBytesMax) {
      return cursor_.Error(absl::StrCat("the metadata are larger than the ",
                                        kMetadataBytesMax, " bytes allowed"));
    }
  }
  return absl::OkStatus();
}

absl::Status GgufParser::ReadTensor(uint64_t number) {
  cursor_.set_subject(
      absl::StrCat("tensor ", number + 1, " of ", num_tensors_));
  GgufTensor tensor;
  MILLRACE_ASSIGN_OR_RETURN(tensor.name, cursor_.String(kTensorNameBytesMax));
  if (tensor.name.empty()) {
    return cursor_.Error("has no name");
  }
  cursor_.set_subject(absl::StrCat("tensor '", Printable(tensor.name), "'"));
  MILLRACE_RETURN_IF_ERROR(ReadDimensions(tensor));
  MILLRACE_ASSIGN_OR_RETURN(const uint32_t type, cursor_.U32());
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t offset, cursor_.U64());
  tensor.type = FindGgmlType(type);
  if (tensor.type == nullptr) {
    return cursor_.Error(absl::StrCat("has the unknown ggml type ", type));
  }
  if (tensor.ne[0] % tensor.type->block_elements != 0) {
    return cursor_.Error(absl::StrCat(
        "rows of ", tensor.ne[0], " elements are no multiple of the ",
        tensor.type->block_elements, " in a block of ", tensor.type->name));
  }
  tensor.bytes = TensorBytes(*tensor.type, tensor.ne, file_.size());
  if (tensor.bytes < 0 || offset > static_cast<uint64_t>(file_.size())) {
    return WithHint(
        cursor_.Error(absl::StrCat("does not lie inside the file of ",
                                   file_.size(), " bytes")),
        "the file is cut short or damaged: copy or download it again");
  }
  tensor.offset = static_cast<int64_t>(offset);
  if (!out_.tensor_index_.emplace(tensor.name, out_.tensors_.size()).second) {
    return cursor_.Error("is there twice");
  }
  out_.tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status GgufParser::ReadDimensions(GgufTensor& tensor) {
  MILLRACE_ASSIGN_OR_RETURN(const uint32_t dimensions, cursor_.U32());
  if (dimensions < 1 || dimensions > 4) {
    return cursor_.Error(
        absl::StrCat("has ", dimensions, " dimensions, must have 1 to 4"));
  }
  for (uint32_t i = 0; i < dimensions; ++i) {
    MILLRACE_ASSIGN_OR_RETURN(const uint64_t size, cursor_.U64());
    if (size < 1 || size > static_cast<uint64_t>(INT64_MAX)) {
      return cursor_.Error(absl::StrCat("dimension ", i, " is ", size,
                                        ", must be from 1 to ", INT64_MAX));
    }
    tensor.ne.push_back(static_cast<int64_t>(size));
  }
  return absl::OkStatus();
}

absl::Status GgufParser::PlaceTensors() {
  constexpr char kAlignmentKey[] = "general.alignment";
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t alignment,
      out_.IntegerOr(kAlignmentKey, 1, kAlignmentMax, 32));
  if ((alignment & (alignment - 1)) != 0) {
    return out_.ErrorAt(kAlignmentKey,
                        absl::StrCat("must be a power of two, is ", alignment));
  }
  const int64_t data_begin =
      (cursor_.position() + alignment - 1) / alignment * alignment;
  std::vector<const GgufTensor*> order;
  for (GgufTensor& tensor : out_.tensors_) {
    if (tensor.offset % alignment != 0) {
      return TensorError(
          tensor, absl::StrCat("its offset ", tensor.offset,
                               " is no multiple of the alignment ", alignment));
    }
    const int64_t left = file_.size() - data_begin - tensor.offset;
    if (tensor.bytes > left) {
      return WithHint(
          TensorError(tensor, absl::StrCat("its ", tensor.bytes, " bytes at ",
                                           data_begin + tensor.offset,
                                           " go past the end of the file at ",
                                           file_.size())),
          "the file is cut short or damaged: copy or download it again");
    }
    tensor.offset += data_begin;
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const GgufTensor* a, const GgufTensor* b) {
              return a->offset < b->offset;
            });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
      return TensorError(*order[i],
                         absl::StrCat("overlaps tensor '",
                                      Printable(order[i - 1]->name), "'"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Parse(
    const RandomAccessFile& file, Extent extent) {
  std::unique_ptr<GgufFile> out(new GgufFile());
  out->path_ = file.path();
  MILLRACE_RETURN_IF_ERROR(GgufParser(file, *out).Parse(extent));
  return out;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(
    const std::string& path, Extent extent) {
  MILLRACE_ASSIGN_OR_RETURN(const auto file, RandomAccessFile::Open(path));
  return Parse(*file, extent);
}

}  // namespace millrace::model
