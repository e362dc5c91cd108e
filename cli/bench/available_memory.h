#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace millrace::cli {

// Bytes that processes on this machine may still take: what the kernel calls
// available, or less where a control group bounds this process; 0 where neither
// can be told.
int64_t AvailableMemory();

// Its parts. The line `MemAvailable` of /proc/meminfo in bytes; 0 without one.
int64_t ReadMemAvailable(absl::string_view meminfo);
// What a control group leaves: its limit ("max": none) less its use; -1 where
// there is no limit.
int64_t ReadGroupRoom(absl::string_view limit, absl::string_view used);

}  // namespace millrace::cli
