#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/bench/node_entry.h"

namespace millrace::cli {

inline constexpr int64_t kRecordBytesDefault = int64_t{4} << 20;
inline constexpr int64_t kRecordBytesMax = int64_t{256} << 20;

// Measures the disk under `folder` as an expert store reads it: records of
// `record_bytes` (rounded up to 4 KiB) from random places of a file without a
// name, past the page cache, four at a time. Writes up to 1 GiB there (`quick`:
// 256 MiB), never more than half of what is free, and leaves nothing behind.
// UsageError naming --nvme where the folder cannot be used so; kCancelled soon
// after an interrupt. A host that caches for its virtual machines is not seen.
absl::StatusOr<NvmeEntry> ProbeDisk(const std::string& folder,
                                    int64_t record_bytes, bool quick);

}  // namespace millrace::cli
