#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace millrace::model {

// Reads little-endian values one after another from the front of a file.
// Borrows the file; one thread. Nothing is allocated for a length that goes
// past the end. Errors name the file and what is being read.
class GgufCursor {
 public:
  explicit GgufCursor(const RandomAccessFile& file) : file_(file) {}

  // What the next reads are about, for errors: "key 'general.name'".
  void set_subject(std::string subject) { subject_ = std::move(subject); }

  [[nodiscard]] int64_t position() const { return position_; }
  [[nodiscard]] int64_t remaining() const { return file_.size() - position_; }

  absl::StatusOr<uint32_t> U32();
  absl::StatusOr<uint64_t> U64();
  // `bytes` raw bytes.
  absl::StatusOr<std::string> Raw(uint64_t bytes);
  // A u64 length of at most `bytes_max`, and so many bytes.
  absl::StatusOr<std::string> String(uint64_t bytes_max);

  // "FILE: SUBJECT: what"
  [[nodiscard]] absl::Status Error(absl::string_view what) const;

 private:
  [[nodiscard]] absl::Status Fill(char* out, int64_t bytes);

  const RandomAccessFile& file_;
  std::string subject_ = "header";
  int64_t position_ = 0;
  std::vector<char> window_;  // bytes of the file from window_begin_ on
  int64_t window_begin_ = 0;
};

}  // namespace millrace::model
