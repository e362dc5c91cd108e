#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, as in iSCSI).
// Extends `crc`, the checksum of what came before (0 for nothing), by `size`
// bytes. Uses the processor's instruction where it has one. Any thread.
[[nodiscard]] uint32_t Crc32c(uint32_t crc, const void* data, size_t size);

// Checksum of A followed by B from crc(A), crc(B) and the size of B in bytes.
[[nodiscard]] uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b,
                                     uint64_t size_b);

// The two implementations behind Crc32c; equal on every input.
[[nodiscard]] uint32_t Crc32cPortable(uint32_t crc, const void* data,
                                      size_t size);
[[nodiscard]] bool Crc32cHasInstruction();
// Crc32cHasInstruction().
[[nodiscard]] uint32_t Crc32cByInstruction(uint32_t crc, const void* data,
                                           size_t size);

}  // namespace millrace
