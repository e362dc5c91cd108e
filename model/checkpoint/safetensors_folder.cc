#include "model/checkpoint/safetensors_folder.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "boost/json/object.hpp"
#include "model/checkpoint/safetensors_file.h"

namespace millrace::model {
namespace {

constexpr char kSingleName[] = "model.safetensors";
constexpr char kIndexName[] = "model.safetensors.index.json";
// The largest published checkpoint has below 200 files and 200,000 tensors.
constexpr size_t kFilesMax = 10'000;
constexpr int64_t kIndexBytesMax = int64_t{100} << 20;

using WeightMap = absl::flat_hash_map<std::string, std::string>;

bool IsPlainName(absl::string_view name) {
  if (name.empty() || name == "." || name == "..") {
    return false;
  }
  for (const char c : name) {
    if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20) {
      return false;
    }
  }
  return true;
}

struct Index {
  WeightMap file_of_tensor;
  std::vector<std::string> files;  // in the order of their first mention
};

absl::StatusOr<Index> ReadIndex(const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(path, kIndexBytesMax));
  const std::string object = Printable(path, 512);
  JsonLimits limits;
  limits.depth_max = 8;
  MILLRACE_ASSIGN_OR_RETURN(const Json json, ParseJson(text, object, limits));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject root,
                            JsonObject::From(json, object));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject map, root.Object("weight_map"));
  Index out;
  absl::flat_hash_map<std::string, bool> seen;
  for (const auto& member : map.raw()) {
    const std::string tensor(member.key());
    if (!member.value().is_string()) {
      return map.ErrorAt(tensor, "must be a file name");
    }
    const std::string file(member.value().get_string());
    if (!IsPlainName(file)) {
      return map.ErrorAt(
          tensor, absl::StrCat("'", Printable(file),
                               "' is no plain name of a file in this folder"));
    }
    if (seen.emplace(file, true).second) {
      out.files.push_back(file);
    }
    out.file_of_tensor.emplace(tensor, file);
  }
  if (out.files.size() > kFilesMax) {
    return map.ErrorAt(
        "", absl::StrCat("names ", out.files.size(), " files, more than the ",
                         kFilesMax, " allowed"));
  }
  return out;
}

// Adds the tensors of one file; with a map, those that it gives to this file.
absl::Status AddFile(const std::string& folder, const std::string& name,
                     const WeightMap* map, WeightFiles& out) {
  const std::string path = absl::StrCat(folder, "/", name);
  MILLRACE_ASSIGN_OR_RETURN(auto file, RandomAccessFile::Open(path));
  MILLRACE_ASSIGN_OR_RETURN(SafetensorsHeader header,
                            ReadSafetensorsHeader(*file));
  out.gap.Update(header.gap);
  const int32_t index = out.tensors.AddFile(path);
  out.files.push_back(std::move(file));
  out.header_bytes.push_back(header.header_bytes);
  for (StoredTensor& tensor : header.tensors) {
    if (map != nullptr) {
      const auto found = map->find(tensor.name);
      if (found == map->end() || found->second != name) {
        continue;
      }
    }
    tensor.file_index = index;
    const std::string tensor_name = tensor.name;
    if (!out.tensors.Add(std::move(tensor))) {
      return InputError(
          Printable(path, 512),
          absl::StrCat("tensor '", Printable(tensor_name), "' is there twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<WeightFiles> OpenIndexed(const std::string& folder,
                                        const std::string& index_path) {
  MILLRACE_ASSIGN_OR_RETURN(const Index index, ReadIndex(index_path));
  WeightFiles out;
  out.tensors.set_table_path(index_path);
  for (const std::string& name : index.files) {
    MILLRACE_RETURN_IF_ERROR(AddFile(folder, name, &index.file_of_tensor, out));
  }
  for (const auto& [tensor, file] : index.file_of_tensor) {
    if (!out.tensors.Has(tensor)) {
      return InputError(
          Printable(absl::StrCat(folder, "/", file), 512),
          absl::StrCat("tensor '", Printable(tensor),
                       "' is missing, though the index says it is here"));
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<WeightFiles> OpenSafetensorsFolder(const std::string& folder) {
  const std::string single = absl::StrCat(folder, "/", kSingleName);
  const std::string index = absl::StrCat(folder, "/", kIndexName);
  if (!FileExists(single)) {
    if (FileExists(index)) {
      return OpenIndexed(folder, index);
    }
    return InputError(
        Printable(folder, 512),
        absl::StrCat("has neither ", kSingleName, " nor ", kIndexName),
        "weights must be in safetensors files; download them, or give a .gguf "
        "file");
  }
  WeightFiles out;
  out.tensors.set_table_path(single);
  MILLRACE_RETURN_IF_ERROR(AddFile(folder, kSingleName, nullptr, out));
  return out;
}

}  // namespace millrace::model
