#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "kernels/quant/weight_format.h"
#include "model/checkpoint/tensor_supply.h"

namespace millrace::model {

// One tensor of a checkpoint, whatever the file format. Its bytes lie inside
// its file, and their number follows from shape and type.
struct StoredTensor {
  std::string name;
  std::vector<int64_t> shape;  // row-major: the last is the fastest
  std::string type;            // as the file format calls it
  std::optional<kernels::WeightFormat> format;  // unset: not computed with
  int32_t file_index = 0;
  int64_t offset = 0;  // from the start of the file
  int64_t bytes = 0;
};

// The tensor tables of all files of a checkpoint. Filled by one thread, then
// constant.
class StoredTensors final : public TensorSupply {
 public:
  // Index of the file that has just been opened; tensors refer to it.
  int32_t AddFile(const std::string& path);
  // False when a tensor of that name is there already.
  [[nodiscard]] bool Add(StoredTensor tensor);
  // What is named when a tensor is in none of the files: the index, or the
  // only file.
  void set_table_path(const std::string& path) { table_path_ = path; }

  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }
  [[nodiscard]] const std::vector<StoredTensor>& all() const {
    return tensors_;
  }
  // Null when there is none.
  [[nodiscard]] const StoredTensor* Find(absl::string_view name) const;

  // The tensor of this shape, whatever its type. InputError naming it.
  [[nodiscard]] absl::StatusOr<const StoredTensor*> Require(
      const std::string& name, const std::vector<int64_t>& shape) const;
  // "file: tensor 'name': what"
  [[nodiscard]] absl::Status ErrorAt(const StoredTensor& tensor,
                                     absl::string_view what) const;

  [[nodiscard]] bool Has(absl::string_view name) const override {
    return Find(name) != nullptr;
  }
  [[nodiscard]] absl::StatusOr<Matrix> TakeMatrix(const std::string& name,
                                                  int64_t rows,
                                                  int64_t cols) const override;
  [[nodiscard]] absl::StatusOr<Vector> TakeVector(const std::string& name,
                                                  int64_t size) const override;
  [[nodiscard]] absl::StatusOr<Matrix> TakeSlice(
      const SliceRequest& request) const override;

 private:
  // The tensor, of exactly this shape and a format that is computed with.
  [[nodiscard]] absl::StatusOr<const StoredTensor*> Take(
      const std::string& name, const std::vector<int64_t>& shape) const;

  std::string table_path_;
  std::vector<std::string> paths_;
  std::vector<StoredTensor> tensors_;
  absl::flat_hash_map<std::string, size_t> index_;
};

// The files of a checkpoint, open, and what their headers say.
struct WeightFiles {
  std::vector<std::unique_ptr<RandomAccessFile>> files;
  // Bytes at the front of each that are header, not tensors.
  std::vector<int64_t> header_bytes;
  StoredTensors tensors;
  // Bytes that belong to no tensor where the format forbids them; reported once
  // all tensors of the model have been found.
  absl::Status gap;
};

}  // namespace millrace::model
