#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

// The tile registers of AMX, each thread with its own, as in the processor.

struct EmulatedTiles {
  uint16_t row_bytes[8];
  uint8_t rows[8];
  uint8_t bytes[8][16][64];
};

static inline EmulatedTiles& Tiles() {
  static thread_local EmulatedTiles tiles = {};
  return tiles;
}

static inline void EmulatedLoadConfig(const void* config) {
  const uint8_t* bytes = static_cast<const uint8_t*>(config);
  EmulatedTiles& tiles = Tiles();
  tiles = {};
  std::memcpy(tiles.row_bytes, bytes + 16, sizeof(tiles.row_bytes));
  std::memcpy(tiles.rows, bytes + 48, sizeof(tiles.rows));
}

static inline void EmulatedZero(int tile) {
  std::memset(Tiles().bytes[tile], 0, sizeof(Tiles().bytes[tile]));
}

static inline void EmulatedLoad(int tile, const void* from, int64_t stride) {
  EmulatedZero(tile);
  for (int row = 0; row < Tiles().rows[tile]; ++row) {
    std::memcpy(Tiles().bytes[tile][row],
                static_cast<const uint8_t*>(from) + row * stride,
                Tiles().row_bytes[tile]);
  }
}

static inline void EmulatedStore(int tile, void* to, int64_t stride) {
  for (int row = 0; row < Tiles().rows[tile]; ++row) {
    std::memcpy(static_cast<uint8_t*>(to) + row * stride,
                Tiles().bytes[tile][row], Tiles().row_bytes[tile]);
  }
}

// sum[m][n] += a[m][k] . b[k][n], products of four bytes; those of a are
// signed, those of b if the second argument says so.
static inline int32_t EmulatedDotBytes(const uint8_t* a, const uint8_t* b,
                                       bool b_signed) {
  int32_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<int8_t>(a[i]) *
           (b_signed ? static_cast<int8_t>(b[i]) : static_cast<int32_t>(b[i]));
  }
  return sum;
}

static inline void EmulatedDot(int sum, int a, int b, bool b_signed) {
  EmulatedTiles& tiles = Tiles();
  for (int m = 0; m < tiles.rows[sum]; ++m) {
    for (int n = 0; n < tiles.row_bytes[sum] / 4; ++n) {
      int32_t value;
      std::memcpy(&value, tiles.bytes[sum][m] + 4 * n, sizeof(value));
      for (int k = 0; k < tiles.row_bytes[a] / 4; ++k) {
        value += EmulatedDotBytes(tiles.bytes[a][m] + 4 * k,
                                  tiles.bytes[b][k] + 4 * n, b_signed);
      }
      std::memcpy(tiles.bytes[sum][m] + 4 * n, &value, sizeof(value));
    }
  }
}

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbssd
#undef _tile_dpbsud
#define _tile_loadconfig(config) EmulatedLoadConfig(config)
#define _tile_release() static_cast<void>(0)
#define _tile_loadd(tile, from, stride) EmulatedLoad(tile, from, stride)
#define _tile_stored(tile, to, stride) EmulatedStore(tile, to, stride)
#define _tile_zero(tile) EmulatedZero(tile)
#define _tile_dpbssd(sum, a, b) EmulatedDot(sum, a, b, true)
#define _tile_dpbsud(sum, a, b) EmulatedDot(sum, a, b, false)
