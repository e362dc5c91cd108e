#include "cli/line_reader.h"

#include <editline/readline.h>
#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/interrupt.h"

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
    return ReadPlain();
  }
  const std::unique_ptr<char, FreeDeleter> line(readline(prompt.c_str()));
  const bool interrupted = Interrupts() > 0;
  ForgetInterrupts();
  if (TerminationRequested()) {
    return std::nullopt;
  }
  if (line == nullptr && interrupted) {
    std::fputs("\n", stdout);  // Ctrl-C: editline gives the line up
    return std::string();
  }
  if (line == nullptr) {
    return std::nullopt;
  }
  if (line.get()[0] != '\0') {
    add_history(line.get());
  }
  return std::string(line.get());
}

std::optional<std::string> LineReader::ReadPlain() {
  if (Interrupts() > 0) {
    return std::nullopt;  // whatever was read ahead
  }
  size_t searched = 0;
  size_t end = ahead_.find('\n');
  while (end == std::string::npos && !ended_) {
    if (!AwaitInput(STDIN_FILENO)) {
      return std::nullopt;
    }
    searched = ahead_.size();
    char buffer[1 << 12];
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    ended_ = got <= 0;
    ahead_.append(buffer, got > 0 ? static_cast<size_t>(got) : 0);
    end = ahead_.find('\n', searched);
  }
  if (end == std::string::npos && ahead_.empty()) {
    return std::nullopt;
  }
  std::string line = ahead_.substr(0, end);
  ahead_.erase(0, end == std::string::npos ? end : end + 1);
  return line;
}

}  // namespace millrace::cli
