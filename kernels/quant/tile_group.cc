// Where the codes and scales of a row lie inside a quantised tile. Four codes
// of a row are four neighbouring bytes, handled as one 32-bit word.

#include <cstring>
#include <type_traits>

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
          scales + layout.scale_bytes + in_record * CodeBytes(layout),
          in_record};
}

uint32_t LoadWord(const uint8_t* from) {
  uint32_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Codes of 4 to 6 bits have nibbles in front; what is above them, or codes of 2
// and 3 bits, lies in planes: two bits of four quads each, then one bit of
// eight.
struct Planes {
  int pairs_shift = -1;  // of the two bits in the code; -1: no such planes
  int pairs_at = 0;      // offset of their first register
  int single_shift = -1;
  int single_at = 0;
};

constexpr Planes PlanesOf(int code_bits) {
  switch (code_bits) {
    case 2:
      return {0, 0, -1, 0};
    case 3:
      return {0, 0, 2, 2 * kRegisterBytes};
    case 5:
      return {-1, 0, 4, kNibbleBytes};
    case 6:
      return {4, kNibbleBytes, -1, 0};
    default:
      return {};
  }
}

// Offset of the register of pairs that holds a quad, and its bits there.
int PairsRegister(int quad) { return kRegisterBytes * (quad / 4); }
int PairsBit(int quad) { return 2 * (quad % 4); }

constexpr uint32_t kNibbles = 0x0f0f0f0f;
constexpr uint32_t kPairs = 0x03030303;
constexpr uint32_t kSingles = 0x01010101;

// Four codes of 16 rows.
using QuadWords = uint32_t[kTileRows];

// The low four bits of the codes of a group: two quads to a register. A load
// lays out every weight of a stage, hence two quads at a time.
void WriteNibbles(std::span<const GroupCodes> rows, std::byte* codes) {
  QuadWords registers[kQuads / 2] = {};
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int i = 0; i < kQuads / 2; ++i) {
      const uint32_t first = LoadWord(rows[row].code + 8 * i);
      const uint32_t second = LoadWord(rows[row].code + 8 * i + 4);
      registers[i][row] = (first & kNibbles) | (second & kNibbles) << 4;
    }
  }
  std::memcpy(codes, registers, sizeof(registers));
}

// Writes what is not nibbles of a group, whole vectors at a time.
template <int kBits>
void WriteRegisters(const QuadWords (&quads)[kQuads], std::byte* codes) {
  constexpr Planes kPlanes = PlanesOf(kBits);
  if constexpr (kBits == 8) {
    std::memcpy(codes, quads, sizeof(quads));
  }
  if constexpr (kPlanes.pairs_shift >= 0) {
    for (int first = 0; first < kQuads; first += 4) {
      QuadWords plane = {};
      for (int quad = first; quad < first + 4; ++quad) {
        for (int row = 0; row < kTileRows; ++row) {
          plane[row] |= (quads[quad][row] >> kPlanes.pairs_shift & kPairs)
                        << PairsBit(quad);
        }
      }
      std::memcpy(codes + kPlanes.pairs_at + PairsRegister(first), plane,
                  sizeof(plane));
    }
  }
  if constexpr (kPlanes.single_shift >= 0) {
    QuadWords plane = {};
    for (int quad = 0; quad < kQuads; ++quad) {
      for (int row = 0; row < kTileRows; ++row) {
        plane[row] |= (quads[quad][row] >> kPlanes.single_shift & kSingles)
                      << quad;
      }
    }
    std::memcpy(codes + kPlanes.single_at, plane, sizeof(plane));
  }
}

template <int kBits>
uint32_t ReadQuad(int quad, const std::byte* lane) {
  constexpr Planes kPlanes = PlanesOf(kBits);
  uint32_t word = 0;
  if constexpr (kBits == 8) {
    word = LoadBytes<uint32_t>(lane + kRegisterBytes * quad);
  } else if constexpr (kBits >= 4) {
    const auto both = LoadBytes<uint32_t>(lane + kRegisterBytes * (quad / 2));
    word = both >> (4 * (quad & 1)) & kNibbles;
  }
  if constexpr (kPlanes.pairs_shift >= 0) {
    const auto plane =
        LoadBytes<uint32_t>(lane + kPlanes.pairs_at + PairsRegister(quad));
    word |= (plane >> PairsBit(quad) & kPairs) << kPlanes.pairs_shift;
  }
  if constexpr (kPlanes.single_shift >= 0) {
    const auto plane = LoadBytes<uint32_t>(lane + kPlanes.single_at);
    word |= (plane >> quad & kSingles) << kPlanes.single_shift;
  }
  return word;
}

// Calls visit(number of bits as a constant): loops over codes without branches.
template <typename Visit>
void WithBits(int code_bits, Visit visit) {
  switch (code_bits) {
    case 2:
      return visit(std::integral_constant<int, 2>());
    case 3:
      return visit(std::integral_constant<int, 3>());
    case 4:
      return visit(std::integral_constant<int, 4>());
    case 5:
      return visit(std::integral_constant<int, 5>());
    case 6:
      return visit(std::integral_constant<int, 6>());
    default:
      return visit(std::integral_constant<int, 8>());
  }
}

void WriteCodes(int code_bits, std::span<const GroupCodes> rows,
                std::byte* to) {
  if (code_bits >= 4 && code_bits < 8) {
    WriteNibbles(rows, to);
    if (code_bits == 4) {
      return;
    }
  }
  QuadWords quads[kQuads] = {};
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int quad = 0; quad < kQuads; ++quad) {
      quads[quad][row] = LoadWord(rows[row].code + 4 * quad);
    }
  }
  WithBits(code_bits, [&](auto bits) { WriteRegisters<bits>(quads, to); });
}

void ReadCodes(int code_bits, const std::byte* lane, uint8_t* code) {
  WithBits(code_bits, [&](auto bits) {
    for (int quad = 0; quad < kQuads; ++quad) {
      const uint32_t word = ReadQuad<bits>(quad, lane);
      std::memcpy(code + 4 * quad, &word, sizeof(word));
    }
  });
}

// Six-bit values: 256 of a super-block, [group][2][16 rows], cut into four
// vectors of 64. The first three lie in bits 0-5 of three vectors, the fourth
// in their bits 6-7, two bits in each.
constexpr int kSixBitVector = 64;

constexpr int kGroupSubScales = 2 * kTileRows;

// All values of group `in_record`, eight at a time.
void WriteSixBits(const uint8_t (&values)[kGroupSubScales], int in_record,
                  std::byte* vectors) {
  constexpr uint64_t kLowPairs = 0x0303030303030303;
  const int position = kGroupSubScales * in_record;
  for (int i = 0; i < kGroupSubScales; i += 8) {
    uint64_t word;
    std::memcpy(&word, values + i, sizeof(word));
    if (position < 3 * kSixBitVector) {
      std::byte* to = vectors + position + i;
      StoreBytes(LoadBytes<uint64_t>(to) | word, to);
      continue;
    }
    for (int vector = 0; vector < 3; ++vector) {
      std::byte* to =
          vectors + kSixBitVector * vector + position % kSixBitVector + i;
      const uint64_t bits = (word >> (2 * vector) & kLowPairs) << 6;
      StoreBytes(LoadBytes<uint64_t>(to) | bits, to);
    }
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

// Offsets of the scales of a group and row in a tile; -1: not there.
struct ScalePlace {
  int64_t d;  // one byte of E8M0, or two
  int64_t m;
  int64_t sub_scales;  // of the whole record
};

constexpr int kHalvesBytes = 2 * kTileRows;  // a 16-bit number of each row

ScalePlace ScalesOf(const TileLayout& layout, const Place& place, int row) {
  const int64_t record = place.scales;
  if (layout.front_bytes > 0) {
    return {place.front + 2 * row, -1, record};
  }
  if (layout.scale == ScaleType::kE8m0) {
    return {record + kTileRows * place.in_record + row, -1, -1};
  }
  if (layout.minimum == Minimum::kNone) {
    return {record + kHalvesBytes * place.in_record + 2 * row, -1, -1};
  }
  return {record + 2 * row, record + kHalvesBytes + 2 * row,
          record + 2 * kHalvesBytes};
}

// Index of sub-scale `which` (0, 1) of a row, bytes or six-bit values.
int SubScaleAt(const TileLayout& layout, int in_record, int row, int which) {
  return layout.sub_scales == SubScales::kSixBits
             ? kTileRows * (2 * in_record + which) + row
             : 2 * (kTileRows * in_record + row) + which;
}

void WriteBlockScales(const TileLayout& layout, const Place& place,
                      std::span<const GroupCodes> rows, std::byte* tile) {
  const ScalePlace first = ScalesOf(layout, place, 0);
  for (size_t row = 0; row < rows.size(); ++row) {
    if (layout.scale == ScaleType::kE8m0) {
      tile[first.d + static_cast<int64_t>(row)] =
          std::byte{static_cast<uint8_t>(rows[row].d)};
      continue;
    }
    const int64_t at = 2 * static_cast<int64_t>(row);
    StoreBytes(rows[row].d, tile + first.d + at);
    if (first.m >= 0) {
      StoreBytes(rows[row].m, tile + first.m + at);
    }
  }
}

void WriteSubScales(const TileLayout& layout, const Place& place,
                    std::span<const GroupCodes> rows, std::byte* tile) {
  std::byte* to = tile + ScalesOf(layout, place, 0).sub_scales;
  uint8_t scales[kGroupSubScales] = {};
  for (int row = 0; row < static_cast<int>(rows.size()); ++row) {
    for (int which = 0; which < 2; ++which) {
      scales[SubScaleAt(layout, 0, row, which)] =
          rows[static_cast<size_t>(row)].scale[which];
    }
  }
  if (layout.sub_scales == SubScales::kSixBits) {
    WriteSixBits(scales, place.in_record, to);
  } else {
    std::memcpy(to + kGroupSubScales * place.in_record, scales, sizeof(scales));
  }
}

}  // namespace

void WriteTileGroup(WeightFormat format, std::byte* tile, int64_t cols,
                    int64_t group, std::span<const GroupCodes> rows) {
  const TileLayout& layout = LayoutOf(format);
  const Place place = PlaceOf(layout, cols, group);
  WriteCodes(layout.code_bits, rows, tile + place.codes);
  WriteBlockScales(layout, place, rows, tile);
  if (layout.sub_scales != SubScales::kNone) {
    WriteSubScales(layout, place, rows, tile);
  }
}

GroupCodes ReadTileGroup(WeightFormat format, const std::byte* tile,
                         int64_t cols, int row, int64_t group) {
  const TileLayout& layout = LayoutOf(format);
  const Place place = PlaceOf(layout, cols, group);
  GroupCodes codes = {};
  ReadCodes(layout.code_bits, tile + place.codes + 4 * row, codes.code);
  const ScalePlace scales = ScalesOf(layout, place, row);
  codes.d = layout.scale == ScaleType::kE8m0
                ? std::to_integer<uint16_t>(tile[scales.d])
                : LoadBytes<uint16_t>(tile + scales.d);
  if (scales.m >= 0) {
    codes.m = LoadBytes<uint16_t>(tile + scales.m);
  }
  if (layout.sub_scales == SubScales::kNone) {
    return codes;
  }
  for (int which = 0; which < 2; ++which) {
    const int at = SubScaleAt(layout, place.in_record, row, which);
    codes.scale[which] =
        layout.sub_scales == SubScales::kSixBits
            ? ReadSixBits(at, tile + scales.sub_scales)
            : std::to_integer<uint8_t>(tile[scales.sub_scales + at]);
  }
  return codes;
}

}  // namespace millrace::kernels
