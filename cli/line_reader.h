#pragma once

#include <optional>
#include <string>

namespace millrace::cli {

// Lines that a person types: with editing and history on a terminal, plain
// reading elsewhere. Main thread.
class LineReader {
 public:
  LineReader();
  // The next line without its end; nothing at the end of input. An interrupt on
  // a terminal drops the line and gives an empty one.
  std::optional<std::string> Read(const std::string& prompt);

 private:
  const bool terminal_;
};

}  // namespace millrace::cli
