#include "model/checkpoint/gguf_file.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/status_macros.h"

namespace millrace::model {
namespace {

template <typename T>
T Load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Unset where the type is no integer type, or the value is beyond int64.
std::optional<int64_t> IntegerAt(GgufType type, const std::string& bytes,
                                 size_t index) {
  const char* at = bytes.data();
  switch (type) {
    case GgufType::kU8:
      return Load<uint8_t>(at + index);
    case GgufType::kI8:
      return Load<int8_t>(at + index);
    case GgufType::kU16:
      return Load<uint16_t>(at + 2 * index);
    case GgufType::kI16:
      return Load<int16_t>(at + 2 * index);
    case GgufType::kU32:
      return Load<uint32_t>(at + 4 * index);
    case GgufType::kI32:
      return Load<int32_t>(at + 4 * index);
    case GgufType::kU64: {
      const uint64_t value = Load<uint64_t>(at + 8 * index);
      if (value > static_cast<uint64_t>(INT64_MAX)) {
        return std::nullopt;
      }
      return static_cast<int64_t>(value);
    }
    case GgufType::kI64:
      return Load<int64_t>(at + 8 * index);
    default:
      return std::nullopt;
  }
}

std::optional<double> NumberAt(GgufType type, const std::string& bytes,
                               size_t index) {
  if (type == GgufType::kF32) {
    return Load<float>(bytes.data() + 4 * index);
  }
  if (type == GgufType::kF64) {
    return Load<double>(bytes.data() + 8 * index);
  }
  const std::optional<int64_t> integer = IntegerAt(type, bytes, index);
  if (!integer.has_value()) {
    return std::nullopt;
  }
  return static_cast<double>(*integer);
}

}  // namespace

bool GgufFile::LooksLikeGguf(const RandomAccessFile& file) {
  char magic[4] = {};
  return file.size() >= 4 &&
         file.Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(magic), 4))
             .ok() &&
         std::memcmp(magic, "GGUF", 4) == 0;
}

const GgufTensor* GgufFile::FindTensor(absl::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

const GgufValue* GgufFile::Find(absl::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

absl::Status GgufFile::ErrorAt(absl::string_view key,
                               absl::string_view what) const {
  return InputError(Printable(path_, 512),
                    absl::StrCat(Printable(key), ": ", what));
}

absl::StatusOr<int64_t> GgufFile::Integer(absl::string_view key, int64_t low,
                                          int64_t high) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  const auto integer = IntegerAt(value->type, value->bytes, 0);
  if (!integer.has_value() || *integer < low || *integer > high) {
    return ErrorAt(
        key, absl::StrCat("must be a whole number from ", low, " to ", high,
                          integer.has_value() ? absl::StrCat(", is ", *integer)
                                              : std::string()));
  }
  return *integer;
}

absl::StatusOr<int64_t> GgufFile::IntegerOr(absl::string_view key, int64_t low,
                                            int64_t high,
                                            int64_t otherwise) const {
  return Has(key) ? Integer(key, low, high)
                  : absl::StatusOr<int64_t>(otherwise);
}

absl::StatusOr<double> GgufFile::Number(absl::string_view key, double low,
                                        double high) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  const auto number = NumberAt(value->type, value->bytes, 0);
  if (!number.has_value() || !std::isfinite(*number) || *number < low ||
      *number > high) {
    return ErrorAt(
        key, absl::StrCat("must be a number from ", low, " to ", high,
                          number.has_value() ? absl::StrCat(", is ", *number)
                                             : std::string()));
  }
  return *number;
}

absl::StatusOr<double> GgufFile::NumberOr(absl::string_view key, double low,
                                          double high, double otherwise) const {
  return Has(key) ? Number(key, low, high) : absl::StatusOr<double>(otherwise);
}

absl::StatusOr<bool> GgufFile::BoolOr(absl::string_view key,
                                      bool otherwise) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    return otherwise;
  }
  if (value->type != GgufType::kBool) {
    return ErrorAt(key, "must be a boolean");
  }
  return value->bytes[0] != 0;
}

absl::StatusOr<std::string> GgufFile::String(absl::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  if (value->type != GgufType::kString) {
    return ErrorAt(key, "must be a string");
  }
  return value->bytes;
}

absl::StatusOr<std::string> GgufFile::StringOr(
    absl::string_view key, absl::string_view otherwise) const {
  return Has(key) ? String(key)
                  : absl::StatusOr<std::string>(std::string(otherwise));
}

absl::StatusOr<const std::vector<std::string>*> GgufFile::Strings(
    absl::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  if (value->type != GgufType::kArray ||
      (value->element != GgufType::kString && value->count > 0)) {
    return ErrorAt(key, "must be an array of strings");
  }
  return &value->strings;
}

absl::StatusOr<std::vector<int64_t>> GgufFile::Integers(absl::string_view key,
                                                        int64_t low,
                                                        int64_t high) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  const absl::Status wrong =
      ErrorAt(key, absl::StrCat("must be an array of whole numbers from ", low,
                                " to ", high));
  if (value->type != GgufType::kArray) {
    return wrong;
  }
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(value->count));
  for (int64_t i = 0; i < value->count; ++i) {
    const auto integer =
        IntegerAt(value->element, value->bytes, static_cast<size_t>(i));
    if (!integer.has_value() || *integer < low || *integer > high) {
      return wrong;
    }
    out.push_back(*integer);
  }
  return out;
}

absl::StatusOr<std::vector<float>> GgufFile::Floats(
    absl::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  if (value->type != GgufType::kArray) {
    return ErrorAt(key, "must be an array of numbers");
  }
  std::vector<float> out;
  out.reserve(static_cast<size_t>(value->count));
  for (int64_t i = 0; i < value->count; ++i) {
    const auto number =
        NumberAt(value->element, value->bytes, static_cast<size_t>(i));
    if (!number.has_value()) {
      return ErrorAt(key, "must be an array of numbers");
    }
    out.push_back(static_cast<float>(*number));
  }
  return out;
}

}  // namespace millrace::model
