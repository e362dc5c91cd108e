#include "cli/bench/last_cache.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/bench/system_file.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

// No cache is so large; a sum of very many still fits 64 bits.
constexpr int64_t kCacheBytesMax = int64_t{1} << 40;

// Folders NAME and a number in `folder`, in any order; none where it is not
// there.
std::vector<std::string> NumberedFolders(const std::string& folder,
                                         absl::string_view name) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    absl::string_view rest = path;
    int number = 0;
    rest.remove_prefix(folder.size() + 1);
    if (absl::ConsumePrefix(&rest, name) && absl::SimpleAtoi(rest, &number)) {
      found.push_back(path);
    }
  }
  return found;
}

// "32768K", as the kernel writes it; 0 for what is no size.
int64_t SizeOf(absl::string_view text) {
  int64_t kib = 0;
  text = absl::StripAsciiWhitespace(text);
  return absl::ConsumeSuffix(&text, "K") && absl::SimpleAtoi(text, &kib) &&
                 kib > 0 && kib < kCacheBytesMax / 1024
             ? kib * 1024
             : 0;
}

}  // namespace

int64_t ReadLastCaches(const std::string& root) {
  int last = 0;
  int64_t sum = 0;
  std::set<std::string> counted;  // by the processors that share one
  for (const std::string& cpu :
       NumberedFolders(root + "/sys/devices/system/cpu", "cpu")) {
    for (const std::string& cache : NumberedFolders(cpu + "/cache", "index")) {
      int level = 0;
      if (!absl::SimpleAtoi(ReadSystemFile(cache + "/level"), &level) ||
          level < last) {
        continue;
      }
      if (level > last) {
        last = level;
        sum = 0;
        counted.clear();
      }
      if (counted.insert(ReadSystemFile(cache + "/shared_cpu_list")).second) {
        sum += SizeOf(ReadSystemFile(cache + "/size"));
      }
    }
  }
  return sum;
}

int64_t LastCachesBytes(const std::string& root) {
  int64_t said = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  said = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return std::max(said, ReadLastCaches(root));
}

}  // namespace millrace::cli
