#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::transport {

// Bytes of a TCP link outside the frames, little-endian; tables in README.md.

inline constexpr uint32_t kHelloMagic = 0x4B4C524D;  // "MRLK"
inline constexpr uint16_t kLinkWireVersion = 1;

// First bytes of both directions.
struct HelloLayout {
  static constexpr size_t kMagic = 0;           // u32
  static constexpr size_t kVersion = 4;         // u16
  static constexpr size_t kKind = 6;            // u16, HelloKind
  static constexpr size_t kEpoch = 8;           // u64
  static constexpr size_t kSegment = 16;        // u32, of the accepting end
  static constexpr size_t kWindow = 20;         // u32, of the writing end
  static constexpr size_t kFrameBytesMax = 24;  // u64
  static constexpr size_t kToken = 32;          // 16 bytes
  static constexpr size_t kRefusal = 48;        // u32, HelloRefusal
  static constexpr size_t kReserved = 52;       // 8 zeros
  static constexpr size_t kCrc = 60;            // u32 over the bytes before it
  static constexpr size_t kBytes = 64;
};
static_assert(HelloLayout::kToken + 16 == HelloLayout::kRefusal);
static_assert(HelloLayout::kCrc + 4 == HelloLayout::kBytes);

enum class HelloKind : uint16_t { kDial = 1, kAccept = 2, kRefuse = 3 };
enum class HelloRefusal : uint32_t {
  kNone = 0,
  kVersion = 1,
  kToken = 2,
  kPlan = 3,  // epoch, segment or frame size differ
};

// In front of everything that follows the hellos.
struct RecordLayout {
  static constexpr size_t kType = 0;      // u32, RecordType
  static constexpr size_t kArgument = 4;  // u32: credits; close: status code
  static constexpr size_t kLength = 8;    // u64: bytes that follow
  static constexpr size_t kBytes = 16;
};
static_assert(RecordLayout::kLength + 8 == RecordLayout::kBytes);

enum class RecordType : uint32_t { kFrame = 1, kCredit = 2, kClose = 3 };

// A close reason is one sentence; longer ones are cut.
inline constexpr size_t kCloseMessageBytesMax = 512;

}  // namespace millrace::transport
