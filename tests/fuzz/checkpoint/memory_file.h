#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace::testing {

// A file without a place on disk that can be opened by a path of this process.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const;

 private:
  int descriptor_;
};

}  // namespace millrace::testing
