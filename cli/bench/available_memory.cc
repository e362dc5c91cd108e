#include "cli/bench/available_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace millrace::cli {
namespace {

// Empty where the file cannot be read. These files have no size to ask for.
std::string TextOf(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int64_t ReadMemAvailable(absl::string_view meminfo) {
  for (absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    if (!absl::ConsumePrefix(&line, "MemAvailable:")) {
      continue;
    }
    int64_t kib = 0;
    const bool whole = absl::ConsumeSuffix(&line, " kB") &&
                       absl::SimpleAtoi(line, &kib) && kib >= 0 &&
                       kib < INT64_MAX / 1024;
    return whole ? kib * 1024 : 0;
  }
  return 0;
}

int64_t ReadGroupRoom(absl::string_view limit, absl::string_view used) {
  int64_t most = 0;
  int64_t taken = 0;
  if (!absl::SimpleAtoi(limit, &most) || !absl::SimpleAtoi(used, &taken) ||
      most < 0 || taken < 0) {
    return -1;
  }
  return std::max<int64_t>(0, most - taken);
}

int64_t AvailableMemory() {
  const int64_t available = ReadMemAvailable(TextOf("/proc/meminfo"));
  const int64_t room = ReadGroupRoom(TextOf("/sys/fs/cgroup/memory.max"),
                                     TextOf("/sys/fs/cgroup/memory.current"));
  return room < 0 ? available : std::min(available, room);
}

}  // namespace millrace::cli
