#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace millrace {

// A regular file opened for reading at any offset. Immutable; any thread.
// Errors name the path; reading past the end is an InputError ("ends after").
class RandomAccessFile {
 public:
  // kNotFound (as InputError) when missing; directories and devices refused.
  static absl::StatusOr<std::unique_ptr<RandomAccessFile>> Open(
      const std::string& path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Bytes, as of opening.
  [[nodiscard]] int64_t size() const { return size_; }

  // Fills `out` from `offset` on, or fails and leaves its content undefined.
  [[nodiscard]] absl::Status Read(int64_t offset,
                                  absl::Span<std::byte> out) const;

  // Tells the kernel that these pages are not needed again, so that loading a
  // model does not push everything else out of the page cache twice over.
  void DropCache(int64_t offset, int64_t size) const;

 private:
  RandomAccessFile(std::string path, int descriptor, int64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

  const std::string path_;
  const int descriptor_;
  const int64_t size_;
};

// The whole file, refused when larger than `bytes_max`.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t bytes_max);

// The same; a pipe is read to its end, as `<(command)` is one. kCancelled where
// a signal ends the wait for it.
absl::StatusOr<std::string> ReadFileOrPipe(const std::string& path,
                                           int64_t bytes_max);

// Writes anew so that a reader sees the old or the new content whole, with the
// old mode, through symbolic links; what is no regular file is written to.
[[nodiscard]] absl::Status WriteFileAtomically(const std::string& path,
                                               absl::Span<const char> content);

[[nodiscard]] bool IsDirectory(const std::string& path);
[[nodiscard]] bool FileExists(const std::string& path);

}  // namespace millrace
