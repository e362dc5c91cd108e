#include "cli/batch_lines.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"

namespace millrace::cli {
namespace {

constexpr int64_t kBatchBytesMax = int64_t{1} << 30;
// Answers are written in parts of about this size.
constexpr size_t kOutBytes = size_t{1} << 20;

}  // namespace

absl::Status AnswerLines(const std::string& path, const LineAnswer& answer,
                         Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string lines,
                            ReadFile(path, kBatchBytesMax));
  std::string out;
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    ++number;
    if (line.empty()) {
      continue;
    }
    absl::StatusOr<boost::json::object> document =
        answer(line, absl::StrCat(path, ":", number));
    if (!document.ok()) {
      document = boost::json::object{{"error", ErrorJson(document.status())}};
    }
    absl::StrAppend(&out, WriteJson(*std::move(document)), "\n");
    if (out.size() >= kOutBytes) {
      console.Out(std::exchange(out, {}));
      MILLRACE_RETURN_IF_ERROR(console.OutStatus());
    }
  }
  console.Out(out);
  return absl::OkStatus();
}

}  // namespace millrace::cli
