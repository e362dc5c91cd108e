#pragma once

#include <cstdint>
#include <string>

namespace millrace::cli {

// Bytes of all last caches of this machine together: a processor may have many,
// each of which holds what its own threads read. Never less than the C library
// says of one; 0 where neither tells. `root` stands before /sys.
int64_t LastCachesBytes(const std::string& root = "");

// Its part: the last caches below /sys alone, each counted once.
int64_t ReadLastCaches(const std::string& root);

}  // namespace millrace::cli
