#include "cli/host_name.h"

#include <unistd.h>

namespace millrace::cli {

std::string HostName(absl::string_view otherwise) {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0'
             ? std::string(name)
             : std::string(otherwise);
}

}  // namespace millrace::cli
