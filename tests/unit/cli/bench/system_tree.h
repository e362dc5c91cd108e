#pragma once

#include <filesystem>
#include <string>

#include "tests/support/temp_dir.h"

namespace millrace::testing {

// A made-up /proc and /sys; goes with the object.
class SystemTree {
 public:
  [[nodiscard]] const std::string& root() const { return folder_.path(); }
  // `path` begins with '/', as on a machine.
  void Write(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    WriteTestFile(file, content);
  }

 private:
  TempDir folder_;
};

}  // namespace millrace::testing
