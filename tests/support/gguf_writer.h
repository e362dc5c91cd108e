#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace millrace::testing {

// One entry of the tensor table to be written; fields can be made wrong.
struct GgufWriterTensor {
  std::string name;
  std::vector<int64_t> ne;  // fastest first
  uint32_t type = 0;        // ggml id
  std::string data;
  std::optional<uint64_t> offset;      // unset: where the data lie
  std::optional<uint32_t> dimensions;  // unset: ne.size()
};

// Builds the bytes of a GGUF file, right or wrong in a chosen place. Keys keep
// the order in which they were first set.
class GgufWriter {
 public:
  void SetU32(const std::string& key, uint32_t value);
  void SetF32(const std::string& key, float value);
  void SetBool(const std::string& key, bool value);
  void SetString(const std::string& key, const std::string& value);
  void SetStrings(const std::string& key,
                  const std::vector<std::string>& values);
  void SetI32s(const std::string& key, const std::vector<int32_t>& values);
  void SetF32s(const std::string& key, const std::vector<float>& values);
  // Any value type, with these bytes behind it.
  void SetRaw(const std::string& key, uint32_t type, const std::string& bytes);
  void Remove(const std::string& key);

  // Offset from the data section of what is added next follows from the data
  // before it.
  void AddTensor(const std::string& name, const std::vector<int64_t>& ne,
                 uint32_t type, const std::string& data);
  // The tensor of this name; it must be there.
  GgufWriterTensor& Tensor(const std::string& name);

  [[nodiscard]] std::string Build() const;

  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> num_tensors;
  std::optional<uint64_t> num_keys;
  int64_t alignment = 32;
  std::string more_keys;  // raw bytes behind the keys
  std::vector<GgufWriterTensor> tensors;

 private:
  struct Value {
    uint32_t type;
    std::string bytes;
  };
  std::vector<std::string> order_;
  std::map<std::string, Value> values_;
};

// Little-endian bytes, and the string form of the format.
std::string GgufU32(uint32_t value);
std::string GgufU64(uint64_t value);
std::string GgufString(const std::string& text);

}  // namespace millrace::testing
