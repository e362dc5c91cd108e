#include "tests/fuzz/checkpoint/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace millrace::testing {

MemoryFile::MemoryFile(const uint8_t* data, size_t size)
    : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
  if (descriptor_ < 0 ||
      write(descriptor_, data, size) != static_cast<ssize_t>(size)) {
    std::perror("memfd");
    std::abort();
  }
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::string MemoryFile::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

}  // namespace millrace::testing
