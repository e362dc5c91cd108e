#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace millrace {
namespace {

// The one process-wide setting of logging; relaxed, since a line more or less
// around a change of level harms nobody.
std::atomic<int> log_level_min{static_cast<int>(LogLevel::kInfo)};

constexpr const char* kLevelNames[] = {"debug", "info", "warning", "error"};

absl::string_view ComponentOf(absl::string_view file) {
  for (absl::string_view component :
       {"base", "kernels", "model", "planner", "transport", "stage-worker",
        "coordinator", "cli"}) {
    const size_t at = file.rfind(absl::StrCat("/", component, "/"));
    if (at != absl::string_view::npos) {
      return component;
    }
  }
  return "millrace";
}

}  // namespace

void SetLogLevel(LogLevel level) {
  log_level_min.store(static_cast<int>(level), std::memory_order_relaxed);
}

bool LogEnabled(LogLevel level) {
  return static_cast<int>(level) >=
         log_level_min.load(std::memory_order_relaxed);
}

void LogLine(LogLevel level, const char* file, absl::string_view text) {
  if (!LogEnabled(level)) {
    return;
  }
  std::string line = absl::StrCat(
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                       absl::UTCTimeZone()),
      " ", kLevelNames[static_cast<int>(level)], " ", ComponentOf(file), ": ");
  for (const char c : text) {
    line.push_back(c == '\n' || c == '\r' ? ' ' : c);
  }
  line.push_back('\n');
  // A full or closed stderr must not end the program.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace millrace
