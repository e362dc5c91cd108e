#include "kernels/quant/tile.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "kernels/quant/fp8_tile.h"
#include "kernels/quant/group.h"
#include "kernels/quant/half.h"

namespace millrace::kernels {
namespace {

constexpr int64_t RoundUpTo64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Bytes of one element of an unquantised format.
int64_t ElementBytes(WeightFormat format) {
  return TraitsOf(format).block_bytes;
}

// Offset of element (row, k) of an unquantised tile. BF16 lies in pairs of k;
// the others one k after the other.
int64_t ElementOffset(WeightFormat format, int row, int64_t k) {
  if (format == WeightFormat::kBf16) {
    return k / 2 * (4 * kTileRows) + 4 * row + 2 * (k % 2);
  }
  return (k * kTileRows + row) * ElementBytes(format);
}

float DecodeElement(WeightFormat format, const std::byte* from) {
  if (format == WeightFormat::kF32) {
    return LoadBytes<float>(from);
  }
  const uint16_t half = LoadBytes<uint16_t>(from);
  return format == WeightFormat::kF16 ? HalfToFloat(half) : Bf16ToFloat(half);
}

// Writes the tile in its order: 16 rows are read side by side.
template <size_t kBytes>
void PackElements(WeightFormat format, const std::byte* rows,
                  int64_t row_stride, int num_rows, int64_t cols,
                  std::byte* tile) {
  for (int64_t k = 0; k < cols; ++k) {
    std::byte* column = tile + ElementOffset(format, 0, k);
    const int64_t step = ElementOffset(format, 1, 0);
    const std::byte* from = rows + k * static_cast<int64_t>(kBytes);
    for (int row = 0; row < num_rows; ++row) {
      std::memcpy(column + row * step, from + row * row_stride, kBytes);
    }
  }
}

// Whether a 16-bit number is an infinity or a NaN.
bool IsNotFinite(ScaleType type, uint16_t bits) {
  const uint16_t exponent = type == ScaleType::kF16 ? 0x7c00 : 0x7f80;
  return (bits & exponent) == exponent;
}

bool HasBadScale(const TileLayout& layout, std::span<const GroupCodes> rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const GroupCodes& row) {
    if (layout.scale == ScaleType::kE8m0) {
      return row.d == kE8m0NotANumber;
    }
    return IsNotFinite(layout.scale, row.d) ||
           (layout.minimum != Minimum::kNone &&
            IsNotFinite(layout.scale, row.m));
  });
}

TileError PackGroups(WeightFormat format, const std::byte* rows,
                     int64_t row_stride, int num_rows, int64_t cols,
                     std::byte* tile) {
  const TileLayout& layout = LayoutOf(format);
  GroupCodes all[kTileRows];
  const std::span<GroupCodes> codes(all, static_cast<size_t>(num_rows));
  for (int64_t group = 0; group < cols / kGroup; ++group) {
    ReadStoredGroups(format, rows, row_stride, group, codes);
    if (HasBadScale(layout, codes)) {
      return TileError::kBadScale;
    }
    WriteTileGroup(format, tile, cols, group, codes);
  }
  return TileError::kNone;
}

}  // namespace

int64_t TileBytes(WeightFormat format, int64_t cols) {
  if (format == WeightFormat::kFp8) {
    return Fp8TileBytes(cols);
  }
  if (!IsQuantised(format)) {
    const int64_t padded =
        format == WeightFormat::kBf16 ? cols + (cols & 1) : cols;
    return RoundUpTo64(padded * kTileRows * ElementBytes(format));
  }
  const TileLayout& layout = LayoutOf(format);
  const int64_t groups = cols / kGroup;
  const int64_t records =
      (groups + layout.groups_per_record - 1) / layout.groups_per_record;
  return FrontBytes(layout, cols) + records * layout.scale_bytes +
         groups * CodeBytes(layout);
}

TileError PackTile(WeightFormat format, const std::byte* rows,
                   int64_t row_stride, int num_rows, int64_t cols,
                   std::byte* tile) {
  if (format == WeightFormat::kFp8) {
    return PackFp8Tile(rows, row_stride, num_rows, cols, tile);
  }
  std::memset(tile, 0, static_cast<size_t>(TileBytes(format, cols)));
  if (format == WeightFormat::kF32) {
    PackElements<4>(format, rows, row_stride, num_rows, cols, tile);
  } else if (!IsQuantised(format)) {
    PackElements<2>(format, rows, row_stride, num_rows, cols, tile);
  } else {
    return PackGroups(format, rows, row_stride, num_rows, cols, tile);
  }
  return TileError::kNone;
}

void DecodeTileRow(WeightFormat format, const std::byte* tile, int row,
                   int64_t cols, float* out) {
  if (format == WeightFormat::kFp8) {
    DecodeFp8TileRow(tile, row, cols, out);
    return;
  }
  if (!IsQuantised(format)) {
    for (int64_t k = 0; k < cols; ++k) {
      out[k] = DecodeElement(format, tile + ElementOffset(format, row, k));
    }
    return;
  }
  for (int64_t group = 0; group < cols / kGroup; ++group) {
    DecodeGroup(format, ReadTileGroup(format, tile, cols, row, group),
                out + group * kGroup);
  }
}

void DecodeStoredRow(WeightFormat format, const std::byte* stored, int64_t cols,
                     float* out) {
  if (format == WeightFormat::kFp8) {
    DecodeFp8StoredRow(stored, cols, out);
    return;
  }
  if (!IsQuantised(format)) {
    for (int64_t k = 0; k < cols; ++k) {
      out[k] = DecodeElement(format, stored + k * ElementBytes(format));
    }
    return;
  }
  for (int64_t group = 0; group < cols / kGroup; ++group) {
    GroupCodes codes;
    ReadStoredGroups(format, stored, 0, group, {&codes, 1});
    DecodeGroup(format, codes, out + group * kGroup);
  }
}

}  // namespace millrace::kernels
