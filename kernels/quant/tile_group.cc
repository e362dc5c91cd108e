// Where the codes and scales of a row lie inside a quantised tile. Four codes
// of a row are four neighbouring bytes, handled as one 32-bit word.

#include <cstring>

#include "kernels/quant/group.h"
#include "kernels/quant/half.h"
#include "kernels/quant/tile.h"

namespace millrace::kernels {
namespace {

constexpr int kQuads = kGroup / 4;
constexpr int kRegisterBytes = 4 * kTileRows;
constexpr int kNibbleBytes = 4 * kRegisterBytes;

struct Place {
  int64_t front;   // offset of f16 d[16] before the records
  int64_t scales;  // offset of the record
  int64_t codes;   // offset of the group's codes
  int in_record;   // index of the group in its record
};

Place PlaceOf(const TileLayout& layout, int64_t cols, int64_t group) {
  const int64_t record = group / layout.groups_per_record;
  const int in_record = static_cast<int>(group % layout.groups_per_record);
  const int64_t scales =
      FrontBytes(layout, cols) + record * RecordBytes(layout);
  return {record * layout.front_bytes, scales,
          scales + layout.scale_bytes + in_record * layout.code_bytes,
          in_record};
}

void OrWord(uint32_t bits, std::byte* to) {
  StoreBytes(LoadBytes<uint32_t>(to) | bits, to);
}

void WriteCodes(int code_bits, const uint8_t* code, std::byte* lane) {
  for (int quad = 0; quad < kQuads; ++quad) {
    uint32_t word;
    std::memcpy(&word, code + 4 * quad, sizeof(word));
    if (code_bits == 8) {
      StoreBytes(word, lane + kRegisterBytes * quad);
      continue;
    }
    OrWord((word & 0x0f0f0f0f) << (4 * (quad & 1)),
           lane + kRegisterBytes * (quad / 2));
    if (code_bits == 5) {
      OrWord((word >> 4 & 0x01010101) << quad, lane + kNibbleBytes);
    } else if (code_bits == 6) {
      OrWord((word >> 4 & 0x03030303) << (2 * (quad % 4)),
             lane + kNibbleBytes + kRegisterBytes * (quad / 4));
    }
  }
}

void ReadCodes(int code_bits, const std::byte* lane, uint8_t* code) {
  for (int quad = 0; quad < kQuads; ++quad) {
    uint32_t word;
    if (code_bits == 8) {
      word = LoadBytes<uint32_t>(lane + kRegisterBytes * quad);
    } else {
      word = LoadBytes<uint32_t>(lane + kRegisterBytes * (quad / 2));
      word = word >> (4 * (quad & 1)) & 0x0f0f0f0f;
    }
    if (code_bits == 5) {
      const uint32_t plane = LoadBytes<uint32_t>(lane + kNibbleBytes);
      word |= (plane >> quad & 0x01010101) << 4;
    } else if (code_bits == 6) {
      const uint32_t plane = LoadBytes<uint32_t>(lane + kNibbleBytes +
                                                 kRegisterBytes * (quad / 4));
      word |= (plane >> (2 * (quad % 4)) & 0x03030303) << 4;
    }
    std::memcpy(code + 4 * quad, &word, sizeof(word));
  }
}

// Six-bit values: 256 of a super-block, [group][scale, minimum][16 rows], cut
// into four vectors of 64. The first three lie in bits 0-5 of three vectors,
// the fourth in their bits 6-7, two bits in each.
constexpr int kSixBitVector = 64;

void WriteSixBits(uint8_t value, int position, std::byte* vectors) {
  const int lane = position % kSixBitVector;
  if (position < 3 * kSixBitVector) {
    vectors[position] |= std::byte{value};
    return;
  }
  for (int i = 0; i < 3; ++i) {
    const int bits = (value >> (2 * i) & 3) << 6;
    vectors[kSixBitVector * i + lane] |= std::byte{static_cast<uint8_t>(bits)};
  }
}

uint8_t ReadSixBits(int position, const std::byte* vectors) {
  const int lane = position % kSixBitVector;
  if (position < 3 * kSixBitVector) {
    return std::to_integer<uint8_t>(vectors[position]) & 63;
  }
  int value = 0;
  for (int i = 0; i < 3; ++i) {
    const std::byte vector = vectors[kSixBitVector * i + lane];
    value |= std::to_integer<int>(vector) >> 6 << (2 * i);
  }
  return static_cast<uint8_t>(value);
}

// Offsets inside the scales of a record.
constexpr int kSecondHalves = 2 * kTileRows;      // second f16[16]
constexpr int kSixBitScales = 2 * kSecondHalves;  // of Q4_K, Q5_K

bool IsSuperBlock(const TileLayout& layout) {
  return layout.groups_per_record == 8;
}

}  // namespace

void WriteTileGroup(WeightFormat format, std::byte* tile, int64_t cols, int row,
                    int64_t group, const GroupCodes& codes) {
  const TileLayout& layout = LayoutOf(format);
  const Place place = PlaceOf(layout, cols, group);
  WriteCodes(layout.code_bits, codes.code, tile + place.codes + 4 * row);
  std::byte* scales = tile + place.scales;
  if (layout.rule == ProductRule::kTwoHalves) {
    StoreBytes(codes.d, tile + place.front + 2 * row);
    const int at = 2 * (kTileRows * place.in_record + row);
    scales[at] = std::byte{codes.scale[0]};
    scales[at + 1] = std::byte{codes.scale[1]};
  } else if (layout.rule == ProductRule::kOneScale) {
    StoreBytes(codes.d, scales + kSecondHalves * place.in_record + 2 * row);
  } else {
    StoreBytes(codes.d, scales + 2 * row);
    StoreBytes(codes.m, scales + kSecondHalves + 2 * row);
    if (IsSuperBlock(layout)) {
      const int at = 2 * kTileRows * place.in_record + row;
      WriteSixBits(codes.scale[0], at, scales + kSixBitScales);
      WriteSixBits(codes.scale[1], at + kTileRows, scales + kSixBitScales);
    }
  }
}

GroupCodes ReadTileGroup(WeightFormat format, const std::byte* tile,
                         int64_t cols, int row, int64_t group) {
  const TileLayout& layout = LayoutOf(format);
  const Place place = PlaceOf(layout, cols, group);
  GroupCodes codes = {};
  ReadCodes(layout.code_bits, tile + place.codes + 4 * row, codes.code);
  const std::byte* scales = tile + place.scales;
  if (layout.rule == ProductRule::kTwoHalves) {
    codes.d = LoadBytes<uint16_t>(tile + place.front + 2 * row);
    const int at = 2 * (kTileRows * place.in_record + row);
    codes.scale[0] = std::to_integer<uint8_t>(scales[at]);
    codes.scale[1] = std::to_integer<uint8_t>(scales[at + 1]);
  } else if (layout.rule == ProductRule::kOneScale) {
    codes.d =
        LoadBytes<uint16_t>(scales + kSecondHalves * place.in_record + 2 * row);
  } else {
    codes.d = LoadBytes<uint16_t>(scales + 2 * row);
    codes.m = LoadBytes<uint16_t>(scales + kSecondHalves + 2 * row);
    if (IsSuperBlock(layout)) {
      const int at = 2 * kTileRows * place.in_record + row;
      codes.scale[0] = ReadSixBits(at, scales + kSixBitScales);
      codes.scale[1] = ReadSixBits(at + kTileRows, scales + kSixBitScales);
    }
  }
  return codes;
}

}  // namespace millrace::kernels
