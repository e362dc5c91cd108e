#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::transport {

// Offsets and sizes of the frame on the wire, all little-endian; the table with
// meanings is in README.md. Shared by the encoder and the decoder alone.

inline constexpr uint32_t kFrameMagic = 0x4652524D;  // "MRRF"
inline constexpr uint16_t kFrameWireVersion = 1;
inline constexpr uint16_t kFrameFlagBodyCrc = 1;
inline constexpr int64_t kTensorAlign = 64;  // a cache line, an AVX-512 vector

struct HeaderLayout {
  static constexpr size_t kMagic = 0;        // u32
  static constexpr size_t kVersion = 4;      // u16
  static constexpr size_t kFlags = 6;        // u16
  static constexpr size_t kEpoch = 8;        // u64
  static constexpr size_t kMicrobatch = 16;  // u64
  static constexpr size_t kSegment = 24;     // u32
  static constexpr size_t kNumOps = 28;      // u32
  static constexpr size_t kNumRows = 32;     // u32
  static constexpr size_t kNumResults = 36;  // u32
  static constexpr size_t kNumTensors = 40;  // u32
  static constexpr size_t kBodyCrc = 44;     // u32, 0 without the flag
  static constexpr size_t kBodyBytes = 48;   // u64
  static constexpr size_t kReserved = 56;    // u32, 0
  static constexpr size_t kHeaderCrc = 60;   // u32 over the bytes before it
  static constexpr size_t kBytes = 64;
};
static_assert(HeaderLayout::kHeaderCrc + 4 == HeaderLayout::kBytes);
static_assert(HeaderLayout::kBodyBytes % 8 == 0);

struct OpenLayout {
  static constexpr uint8_t kKind = 1;
  static constexpr size_t kTopLogprobs = 1;         // u8, after the kind
  static constexpr size_t kNumBias = 2;             // u16
  static constexpr size_t kSlot = 4;                // u32
  static constexpr size_t kPromptTokens = 8;        // u32
  static constexpr size_t kTokensMax = 12;          // u32
  static constexpr size_t kTemperature = 16;        // f32
  static constexpr size_t kTopK = 20;               // i32
  static constexpr size_t kTopP = 24;               // f32
  static constexpr size_t kMinP = 28;               // f32
  static constexpr size_t kPresencePenalty = 32;    // f32
  static constexpr size_t kFrequencyPenalty = 36;   // f32
  static constexpr size_t kRepetitionPenalty = 40;  // f32
  static constexpr size_t kChoice = 44;             // u32
  static constexpr size_t kSeed = 48;               // u64
  static constexpr size_t kBytes = 56;  // then {i32 token, f32 bias} each
};
static_assert(OpenLayout::kSeed + 8 == OpenLayout::kBytes);

struct CloseLayout {
  static constexpr uint8_t kKind = 2;
  static constexpr size_t kSlot = 4;  // u32, after the kind and three zeros
  static constexpr size_t kBytes = 8;
};

struct RowLayout {
  static constexpr size_t kSlot = 0;      // u32
  static constexpr size_t kPosition = 4;  // u32
  static constexpr size_t kToken = 8;     // i32
  static constexpr size_t kTarget = 12;   // i32
  static constexpr size_t kFlags = 16;    // u8, then three zeros
  static constexpr size_t kBytes = 20;
};

struct ResultLayout {
  static constexpr size_t kSlot = 0;        // u32
  static constexpr size_t kPosition = 4;    // u32
  static constexpr size_t kToken = 8;       // i32
  static constexpr size_t kLogprob = 12;    // f32
  static constexpr size_t kLogitsCrc = 16;  // u32
  static constexpr size_t kFailure = 20;    // u8
  static constexpr size_t kNumTop = 21;     // u8, then two zeros
  static constexpr size_t kBytes = 24;  // then {i32 token, f32 logprob} each
};

struct TensorLayout {
  static constexpr size_t kKind = 0;     // u8
  static constexpr size_t kType = 1;     // u8, then two zeros
  static constexpr size_t kRows = 4;     // u32
  static constexpr size_t kColumns = 8;  // u32, then four zeros
  static constexpr size_t kBytes = 16;   // data: see README.md
};

// A token id and a float: logit bias and top log-probabilities.
inline constexpr size_t kPairBytes = 8;

[[nodiscard]] constexpr int64_t AlignTensor(int64_t offset) {
  return (offset + kTensorAlign - 1) / kTensorAlign * kTensorAlign;
}

}  // namespace millrace::transport
