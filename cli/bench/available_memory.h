#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace::cli {

// Bytes that processes on this machine may still take: what the kernel calls
// available, or less where a control group bounds this process, its own or one
// around it, of version 1 or 2. Pages of files count as free in all of them:
// they are given back before anybody goes without. 0 where nothing can be told,
// and where nothing is left. `root` stands before /proc and /sys.
int64_t AvailableMemory(const std::string& root = "");

// Its parts. The line `MemAvailable` of /proc/meminfo in bytes; 0 without one.
int64_t ReadMemAvailable(absl::string_view meminfo);
// Pages of files that memory.stat counts; `prefix` stands before the names that
// include the groups below: "total_" in version 1, nothing in version 2.
int64_t ReadFilePages(absl::string_view stat, absl::string_view prefix);
// What a control group leaves: its limit less its use, of which `reclaimable`
// could be given back. None where there is no limit ("max", or what version 1
// says instead: nearly 2^63).
std::optional<int64_t> ReadGroupRoom(absl::string_view limit,
                                     absl::string_view used,
                                     int64_t reclaimable);

}  // namespace millrace::cli
