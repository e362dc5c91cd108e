#pragma once

#include <sstream>

#include "absl/strings/string_view.h"

namespace millrace {

// error: someone must act. warning: degraded but serving. info: state change
// of a long-lived object. debug: per request. Nothing per token or frame, and
// never the text of a prompt or an answer.
enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Lines below `level` are dropped. Any thread.
void SetLogLevel(LogLevel level);
[[nodiscard]] bool LogEnabled(LogLevel level);

// Writes one line to stderr in one system call: time, level, component, text.
void LogLine(LogLevel level, const char* file, absl::string_view text);

// Collects one line and writes it when the statement ends.
class LogMessage {
 public:
  LogMessage(LogLevel level, const char* file) : level_(level), file_(file) {}
  LogMessage(const LogMessage&) = delete;
  LogMessage& operator=(const LogMessage&) = delete;
  ~LogMessage() { LogLine(level_, file_, stream_.str()); }
  std::ostream& stream() { return stream_; }

 private:
  const LogLevel level_;
  const char* const file_;
  std::ostringstream stream_;
};

}  // namespace millrace

// MILLRACE_LOG(Info) << "stage " << name << " is active";
#define MILLRACE_LOG(level)                                                \
  if (!::millrace::LogEnabled(::millrace::LogLevel::k##level)) {           \
  } else /* NOLINT(readability-braces-around-statements): one statement */ \
    ::millrace::LogMessage(::millrace::LogLevel::k##level, __FILE__).stream()
