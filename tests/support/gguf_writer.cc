#include "tests/support/gguf_writer.h"

#include <cstdlib>
#include <cstring>

namespace millrace::testing {
namespace {

template <typename T>
std::string Bytes(T value) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}

constexpr uint32_t kU32 = 4;
constexpr uint32_t kI32 = 5;
constexpr uint32_t kF32 = 6;
constexpr uint32_t kBool = 7;
constexpr uint32_t kString = 8;
constexpr uint32_t kArray = 9;

void Pad(std::string& out, int64_t alignment) {
  while (static_cast<int64_t>(out.size()) % alignment != 0) {
    out.push_back('\0');
  }
}

}  // namespace

std::string GgufU32(uint32_t value) { return Bytes(value); }
std::string GgufU64(uint64_t value) { return Bytes(value); }
std::string GgufString(const std::string& text) {
  return GgufU64(text.size()) + text;
}

void GgufWriter::SetRaw(const std::string& key, uint32_t type,
                        const std::string& bytes) {
  if (values_.count(key) == 0) {
    order_.push_back(key);
  }
  values_[key] = Value{type, bytes};
}

void GgufWriter::SetU32(const std::string& key, uint32_t value) {
  SetRaw(key, kU32, Bytes(value));
}
void GgufWriter::SetF32(const std::string& key, float value) {
  SetRaw(key, kF32, Bytes(value));
}
void GgufWriter::SetBool(const std::string& key, bool value) {
  SetRaw(key, kBool, std::string(1, value ? '\1' : '\0'));
}
void GgufWriter::SetString(const std::string& key, const std::string& value) {
  SetRaw(key, kString, GgufString(value));
}
void GgufWriter::SetStrings(const std::string& key,
                            const std::vector<std::string>& values) {
  std::string bytes = GgufU32(kString) + GgufU64(values.size());
  for (const std::string& value : values) {
    bytes += GgufString(value);
  }
  SetRaw(key, kArray, bytes);
}
void GgufWriter::SetI32s(const std::string& key,
                         const std::vector<int32_t>& values) {
  std::string bytes = GgufU32(kI32) + GgufU64(values.size());
  for (const int32_t value : values) {
    bytes += Bytes(value);
  }
  SetRaw(key, kArray, bytes);
}
void GgufWriter::SetF32s(const std::string& key,
                         const std::vector<float>& values) {
  std::string bytes = GgufU32(kF32) + GgufU64(values.size());
  for (const float value : values) {
    bytes += Bytes(value);
  }
  SetRaw(key, kArray, bytes);
}

void GgufWriter::Remove(const std::string& key) {
  values_.erase(key);
  std::erase(order_, key);
}

void GgufWriter::AddTensor(const std::string& name,
                           const std::vector<int64_t>& ne, uint32_t type,
                           const std::string& data) {
  GgufWriterTensor tensor;
  tensor.name = name;
  tensor.ne = ne;
  tensor.type = type;
  tensor.data = data;
  tensors.push_back(std::move(tensor));
}

GgufWriterTensor& GgufWriter::Tensor(const std::string& name) {
  for (GgufWriterTensor& tensor : tensors) {
    if (tensor.name == name) {
      return tensor;
    }
  }
  std::abort();
}

std::string GgufWriter::Build() const {
  std::string out = magic + GgufU32(version);
  out += GgufU64(num_tensors.value_or(tensors.size()));
  out += GgufU64(num_keys.value_or(order_.size()));
  for (const std::string& key : order_) {
    const Value& value = values_.at(key);
    out += GgufString(key) + GgufU32(value.type) + value.bytes;
  }
  out += more_keys;
  uint64_t at = 0;
  for (const GgufWriterTensor& tensor : tensors) {
    out += GgufString(tensor.name);
    out += GgufU32(
        tensor.dimensions.value_or(static_cast<uint32_t>(tensor.ne.size())));
    for (const int64_t size : tensor.ne) {
      out += GgufU64(static_cast<uint64_t>(size));
    }
    out += GgufU32(tensor.type) + GgufU64(tensor.offset.value_or(at));
    const uint64_t step = static_cast<uint64_t>(alignment);
    at += (tensor.data.size() + step - 1) / step * step;
  }
  Pad(out, alignment);
  for (const GgufWriterTensor& tensor : tensors) {
    out += tensor.data;
    Pad(out, alignment);
  }
  return out;
}

}  // namespace millrace::testing
