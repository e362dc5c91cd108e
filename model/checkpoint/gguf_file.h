#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "model/checkpoint/ggml_type.h"

namespace millrace::model {

// Value types of GGUF metadata.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// One metadata value as it stands in the file. Read it through GgufFile.
struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType element = GgufType::kU8;  // of an array
  int64_t count = 0;                 // elements of an array
  std::string bytes;                 // scalar, string, or array of numbers
  std::vector<std::string> strings;  // array of strings
};

// One entry of the tensor table; its bytes lie inside the file.
struct GgufTensor {
  std::string name;
  std::vector<int64_t> ne;  // 1 to 4 dimensions, fastest first, all >= 1
  const GgmlType* type = nullptr;
  int64_t offset = 0;  // from the start of the file
  int64_t bytes = 0;
};

// Metadata and tensor table of one GGUF file, versions 2 and 3, little-endian.
// Every count, length, offset and type has been checked against the file before
// the object exists; the memory it takes is at most proportional to the file.
// Errors are InputErrors naming the file and the key or tensor.
// Immutable after Open; any thread.
class GgufFile {
 public:
  enum class Extent {
    kWhole,     // metadata and tensor table; tensor bytes must be there
    kMetadata,  // keys only: what lies behind them is not looked at
  };
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(
      const std::string& path, Extent extent = Extent::kWhole);
  // From a file that is open; it is not needed afterwards.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Parse(
      const RandomAccessFile& file, Extent extent = Extent::kWhole);

  [[nodiscard]] const std::string& path() const { return path_; }
  // Where the metadata and the tensor table end.
  [[nodiscard]] int64_t header_bytes() const { return header_bytes_; }
  // In the order of the file; empty for kMetadata.
  [[nodiscard]] const std::vector<GgufTensor>& tensors() const {
    return tensors_;
  }
  // Null when there is none of that name.
  [[nodiscard]] const GgufTensor* FindTensor(absl::string_view name) const;

  [[nodiscard]] bool Has(absl::string_view key) const {
    return values_.contains(key);
  }
  [[nodiscard]] const GgufValue* Find(absl::string_view key) const;

  // Required; any integer type, in [low, high].
  absl::StatusOr<int64_t> Integer(absl::string_view key, int64_t low,
                                  int64_t high) const;
  absl::StatusOr<int64_t> IntegerOr(absl::string_view key, int64_t low,
                                    int64_t high, int64_t otherwise) const;
  // Required; any number type, finite, in [low, high].
  absl::StatusOr<double> Number(absl::string_view key, double low,
                                double high) const;
  absl::StatusOr<double> NumberOr(absl::string_view key, double low,
                                  double high, double otherwise) const;
  absl::StatusOr<bool> BoolOr(absl::string_view key, bool otherwise) const;
  absl::StatusOr<std::string> String(absl::string_view key) const;
  absl::StatusOr<std::string> StringOr(absl::string_view key,
                                       absl::string_view otherwise) const;
  // Arrays; required. Strings: borrowed from this object.
  absl::StatusOr<const std::vector<std::string>*> Strings(
      absl::string_view key) const;
  absl::StatusOr<std::vector<int64_t>> Integers(absl::string_view key,
                                                int64_t low,
                                                int64_t high) const;
  // Values may be infinite or NaN.
  absl::StatusOr<std::vector<float>> Floats(absl::string_view key) const;

  // "FILE: key: what"
  [[nodiscard]] absl::Status ErrorAt(absl::string_view key,
                                     absl::string_view what) const;

  // Magic bytes of the format at the front of the file?
  static bool LooksLikeGguf(const RandomAccessFile& file);

 private:
  friend class GgufParser;
  GgufFile() = default;

  std::string path_;
  int64_t header_bytes_ = 0;
  absl::flat_hash_map<std::string, GgufValue> values_;
  std::vector<GgufTensor> tensors_;
  absl::flat_hash_map<std::string, size_t> tensor_index_;
};

}  // namespace millrace::model
