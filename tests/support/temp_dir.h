#pragma once

#include <string>

namespace millrace::testing {

// A fresh folder that is removed with all it holds at the end of its scope.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string File(const std::string& name) const {
    return path_ + "/" + name;
  }
  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

// Writes `content` to `path`, or ends the test program.
void WriteTestFile(const std::string& path, const std::string& content);

}  // namespace millrace::testing
