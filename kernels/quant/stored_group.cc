// Reads groups of 32 out of stored blocks.

#include <cstring>

#include "kernels/quant/group.h"
#include "kernels/quant/half.h"
#include "kernels/quant/stored_block.h"

namespace millrace::kernels {
namespace {

uint8_t ByteAt(const std::byte* from, int64_t index) {
  return std::to_integer<uint8_t>(from[index]);
}

// code[i] |= (from[i] >> shift & mask) << to, eight at a time: gcc builds
// vectors out of single bytes here, at a third of the speed.
void AddBits(const std::byte* from, int num, int shift, uint8_t mask, int to,
             uint8_t* code) {
  constexpr uint64_t kEveryByte = 0x0101010101010101;
  for (int i = 0; i < num; i += 8) {
    const uint64_t bits =
        (LoadBytes<uint64_t>(from + i) >> shift & kEveryByte * mask) << to;
    uint64_t codes;
    std::memcpy(&codes, code + i, sizeof(codes));
    codes |= bits;
    std::memcpy(code + i, &codes, sizeof(codes));
  }
}

// Byte j holds element j in its low and j + 16 in its high nibble.
void ReadNibbles(const std::byte* from, uint8_t* code) {
  AddBits(from, kGroup / 2, 0, 15, 0, code);
  AddBits(from, kGroup / 2, 4, 15, 0, code + kGroup / 2);
}

void AddFifthBits(uint32_t bits, uint8_t* code) {
  for (int j = 0; j < kGroup; ++j) {
    code[j] |= static_cast<uint8_t>((bits >> j & 1) << 4);
  }
}

// The scale and, where there is one, the second number of a block of 32; `at`
// moves behind them.
void ReadBlockScales(const TileLayout& layout, const std::byte*& at,
                     GroupCodes& codes) {
  if (layout.scale == ScaleType::kE8m0) {
    codes.d = ByteAt(at, 0);
    at += 1;
    return;
  }
  codes.d = LoadBytes<uint16_t>(at);
  at += 2;
  if (layout.minimum != Minimum::kNone) {
    codes.m = LoadBytes<uint16_t>(at);
    at += 2;
  }
}

// Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4: scales, [fifth bits], nibbles.
void ReadNibbleBlock(const TileLayout& layout, const std::byte* block,
                     GroupCodes& codes) {
  ReadBlockScales(layout, block, codes);
  if (layout.code_bits == 4) {
    ReadNibbles(block, codes.code);
  } else {
    ReadNibbles(block + 4, codes.code);
    AddFifthBits(LoadBytes<uint32_t>(block), codes.code);
  }
}

// INT4 and MLX of 4 bits: byte b holds elements 2b (low) and 2b + 1.
void ReadPairBlock(const TileLayout& layout, const std::byte* block,
                   GroupCodes& codes) {
  ReadBlockScales(layout, block, codes);
  for (int j = 0; j < kGroup / 2; ++j) {
    codes.code[2 * j] = ByteAt(block, j) & 15;
    codes.code[2 * j + 1] = static_cast<uint8_t>(ByteAt(block, j) >> 4);
  }
}

// Q8_0, MLX of 8 bits.
void ReadByteBlock(const TileLayout& layout, const std::byte* block,
                   GroupCodes& codes) {
  ReadBlockScales(layout, block, codes);
  std::memcpy(codes.code, block, kGroup);
}

// Twelve bytes hold eight six-bit scales and eight six-bit minima.
void ReadSixBitScales(const std::byte* s, int j, GroupCodes& codes) {
  if (j < 4) {
    codes.scale[0] = ByteAt(s, j) & 63;
    codes.scale[1] = ByteAt(s, j + 4) & 63;
    return;
  }
  const int low = ByteAt(s, j + 4) & 15;
  const int high = ByteAt(s, j + 4) >> 4;
  codes.scale[0] = static_cast<uint8_t>(low | ByteAt(s, j - 4) >> 6 << 4);
  codes.scale[1] = static_cast<uint8_t>(high | ByteAt(s, j) >> 6 << 4);
}

// Q4_K: d, dmin, scales[12], qs[128]; Q5_K: qh[32] before qs. Two groups share
// 32 bytes of qs: the even one has the low nibbles.
void ReadQ4KOrQ5K(bool has_fifth, const std::byte* block, int j,
                  GroupCodes& codes) {
  codes.d = LoadBytes<uint16_t>(block);
  codes.m = LoadBytes<uint16_t>(block + 2);
  ReadSixBitScales(block + 4, j, codes);
  const std::byte* qh = block + 16;
  const std::byte* qs = block + (has_fifth ? 48 : 16) + 32 * (j / 2);
  AddBits(qs, kGroup, 4 * (j & 1), 15, 0, codes.code);
  if (has_fifth) {
    AddBits(qh, kGroup, j, 1, 4, codes.code);
  }
}

// Q6_K: ql[128], qh[64], i8 scales[16], d. Group j of 8: half j / 4 of the
// block, quarter j % 4 of that half.
void ReadQ6K(const std::byte* block, int j, GroupCodes& codes) {
  const int half = j / 4;
  const int quarter = j % 4;
  const std::byte* ql = block + 64 * half + 32 * (quarter & 1);
  const std::byte* qh = block + 128 + 32 * half;
  AddBits(ql, kGroup, 4 * (quarter / 2), 15, 0, codes.code);
  AddBits(qh, kGroup, 2 * quarter, 3, 4, codes.code);
  codes.scale[0] = ByteAt(block, 192 + 2 * j);
  codes.scale[1] = ByteAt(block, 192 + 2 * j + 1);
  codes.d = LoadBytes<uint16_t>(block + 208);
}

// Two-bit codes of Q2_K and Q3_K: group j of 8 lies in half j / 4 of qs,
// shifted by two bits for each group before it in that half.
void ReadTwoBits(const std::byte* qs, int j, uint8_t* code) {
  AddBits(qs + 32 * (j / 4), kGroup, 2 * (j % 4), 3, 0, code);
}

// Q2_K: scales[16], qs[64], d, dmin.
void ReadQ2K(const std::byte* block, int j, GroupCodes& codes) {
  codes.scale[0] = ByteAt(block, 2 * j);
  codes.scale[1] = ByteAt(block, 2 * j + 1);
  ReadTwoBits(block + 16, j, codes.code);
  codes.d = LoadBytes<uint16_t>(block + 80);
  codes.m = LoadBytes<uint16_t>(block + 82);
}

// Scale k of the 16 six-bit ones of Q3_K in twelve bytes.
uint8_t ReadQ3KScale(const std::byte* s, int k) {
  const int low = ByteAt(s, k % 8) >> (4 * (k / 8)) & 15;
  const int high = ByteAt(s, 8 + k % 4) >> (2 * (k / 4)) & 3;
  return static_cast<uint8_t>(low | high << 4);
}

// Q3_K: hmask[32], qs[64], scales[12], d. A set bit of hmask adds 4.
void ReadQ3K(const std::byte* block, int j, GroupCodes& codes) {
  ReadTwoBits(block + 32, j, codes.code);
  AddBits(block, kGroup, j, 1, 2, codes.code);
  codes.scale[0] = ReadQ3KScale(block + 96, 2 * j);
  codes.scale[1] = ReadQ3KScale(block + 96, 2 * j + 1);
  codes.d = LoadBytes<uint16_t>(block + 108);
}

// read(block, codes) for a block of each row.
template <typename Read>
void ReadRows(const std::byte* block, int64_t row_stride,
              std::span<GroupCodes> out, Read read) {
  for (GroupCodes& codes : out) {
    codes = {};
    read(block, codes);
    block += row_stride;
  }
}

}  // namespace

void ReadStoredGroups(WeightFormat format, const std::byte* rows,
                      int64_t row_stride, int64_t group,
                      std::span<GroupCodes> out) {
  const WeightFormatTraits& traits = TraitsOf(format);
  const TileLayout& layout = LayoutOf(format);
  const int64_t groups_per_block = traits.block_elements / kGroup;
  const std::byte* first = rows + group / groups_per_block * traits.block_bytes;
  const int j = static_cast<int>(group % groups_per_block);
  const auto read_with = [&](auto read) {
    ReadRows(first, row_stride, out, read);
  };
  using Block = const std::byte*;
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBf16:
    case WeightFormat::kFp8:
      break;
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_0:
    case WeightFormat::kQ5_1:
    case WeightFormat::kIq4Nl:
    case WeightFormat::kMxfp4:
      return read_with([&](Block at, GroupCodes& codes) {
        ReadNibbleBlock(layout, at, codes);
      });
    case WeightFormat::kInt4:
    case WeightFormat::kInt4F16:
    case WeightFormat::kInt4Zero:
    case WeightFormat::kInt4ZeroF16:
    case WeightFormat::kMlx4:
    case WeightFormat::kMlx4F16:
      return read_with([&](Block at, GroupCodes& codes) {
        ReadPairBlock(layout, at, codes);
      });
    case WeightFormat::kQ8_0:
    case WeightFormat::kMlx8:
    case WeightFormat::kMlx8F16:
      return read_with([&](Block at, GroupCodes& codes) {
        ReadByteBlock(layout, at, codes);
      });
    case WeightFormat::kQ4_K:
      return read_with([&](Block at, GroupCodes& codes) {
        ReadQ4KOrQ5K(false, at, j, codes);
      });
    case WeightFormat::kQ5_K:
      return read_with([&](Block at, GroupCodes& codes) {
        ReadQ4KOrQ5K(true, at, j, codes);
      });
    case WeightFormat::kQ6_K:
      return read_with(
          [&](Block at, GroupCodes& codes) { ReadQ6K(at, j, codes); });
    case WeightFormat::kQ2_K:
      return read_with(
          [&](Block at, GroupCodes& codes) { ReadQ2K(at, j, codes); });
    case WeightFormat::kQ3_K:
      return read_with(
          [&](Block at, GroupCodes& codes) { ReadQ3K(at, j, codes); });
  }
}

void PairsToHalves(const std::byte* pairs, std::byte* halves) {
  for (int j = 0; j < kGroup / 2; ++j) {
    const int shift = 4 * (j % 2);
    const std::byte low = pairs[j / 2] >> shift & std::byte{15};
    const std::byte high = pairs[j / 2 + 8] >> shift & std::byte{15};
    halves[j] = low | high << 4;
  }
}

}  // namespace millrace::kernels
