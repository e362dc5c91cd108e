#include "cli/line_reader.h"

#include <editline/readline.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>

namespace millrace::cli {
namespace {

struct FreeDeleter {
  void operator()(char* text) const { std::free(text); }
};

}  // namespace

LineReader::LineReader()
    : terminal_(isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {
  if (terminal_) {
    using_history();
  }
}

std::optional<std::string> LineReader::Read(const std::string& prompt) {
  if (!terminal_) {
    std::string line;
    return std::getline(std::cin, line) ? std::optional<std::string>(line)
                                        : std::nullopt;
  }
  const std::unique_ptr<char, FreeDeleter> line(readline(prompt.c_str()));
  if (line == nullptr) {
    return std::nullopt;
  }
  if (line.get()[0] != '\0') {
    add_history(line.get());
  }
  return std::string(line.get());
}

}  // namespace millrace::cli
