#include "cli/report_line.h"

#include "absl/strings/str_format.h"

namespace millrace::cli {

void AppendLine(std::string& out, absl::string_view name,
                absl::string_view value, int width) {
  absl::StrAppendFormat(&out, "%-*s %s\n", width, name, value);
}

}  // namespace millrace::cli
