#pragma once

#include <optional>
#include <string>

namespace millrace::cli {

// Lines that a person types: with editing and history on a terminal, plain
// reading elsewhere. Main thread.
class LineReader {
 public:
  LineReader();
  [[nodiscard]] bool terminal() const { return terminal_; }
  // The next line without its end; nothing at the end of input. An interrupt on
  // a terminal drops the line, gives an empty one, and is forgotten; elsewhere,
  // where nobody could type another, it is the end.
  std::optional<std::string> Read(const std::string& prompt);

 private:
  std::optional<std::string> ReadPlain();

  const bool terminal_;
  std::string ahead_;  // read, not yet given; plain reading only
  bool ended_ = false;
};

}  // namespace millrace::cli
