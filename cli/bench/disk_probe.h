#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/bench/node_entry.h"

namespace millrace::cli {

inline constexpr int64_t kRecordBytesDefault = int64_t{4} << 20;
inline constexpr int64_t kRecordBytesMax = int64_t{256} << 20;

// Measures the disk under `folder` as an expert store reads it: records of
// `record_bytes` (rounded up to 4 KiB, kRecordBytesMax at most) from random
// places of a file without a name, past the page cache, four at a time. Writes
// DiskFileBytes there and leaves nothing behind. UsageError naming --nvme where
// the folder cannot be used so; kResourceExhausted naming --record where memory
// does not hold four of them; kCancelled soon after an interrupt. A host that
// caches for its virtual machines is not seen.
absl::StatusOr<NvmeEntry> ProbeDisk(const std::string& folder,
                                    int64_t record_bytes, bool quick);

// What it writes where so much is free: 1 GiB (`quick`: 256 MiB, or four
// records), but no more than half of what is free; 0 where that does not hold
// DiskFileLeast.
int64_t DiskFileBytes(int64_t record_bytes, int64_t free_bytes, bool quick);
// Two records, in whole pieces of 4 MiB.
int64_t DiskFileLeast(int64_t record_bytes);

}  // namespace millrace::cli
