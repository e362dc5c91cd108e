#include "stage-worker/server/resident_bytes.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace millrace::worker {

int64_t ResidentBytes() {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return 0;
  }
  char text[256];
  const ssize_t size = read(file, text, sizeof(text));
  close(file);
  if (size <= 0) {
    return 0;
  }
  // "size resident shared ...", in pages.
  const std::vector<std::string> fields =
      absl::StrSplit(absl::string_view(text, static_cast<size_t>(size)), ' ');
  int64_t pages = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &pages)) {
    return 0;
  }
  return pages * sysconf(_SC_PAGESIZE);
}

void ReturnFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace millrace::worker
