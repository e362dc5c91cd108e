// See ceilings_avx2.cc.

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"

namespace millrace::kernels {
namespace {

constexpr int kChains = 6;
constexpr int kRows = 16;
constexpr int kRowBytes = 64;

// What ldtilecfg reads: all eight tile registers, as large as they are.
struct alignas(64) TileConfig {
  unsigned char palette = 1;
  unsigned char start_row = 0;
  unsigned char reserved[14] = {};
  unsigned short row_bytes[16] = {kRowBytes, kRowBytes, kRowBytes, kRowBytes,
                                  kRowBytes, kRowBytes, kRowBytes, kRowBytes};
  unsigned char rows[16] = {kRows, kRows, kRows, kRows,
                            kRows, kRows, kRows, kRows};
};
static_assert(sizeof(TileConfig) == 64);

void ByteDot(int64_t turns) {
  const TileConfig config;
  asm volatile(
      "ldtilecfg %1\n\t"
      ".irp r,0,1,2,3,4,5,6,7\n\t"
      "tilezero %%tmm\\r\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5\n\t"
      "tdpbssd %%tmm7, %%tmm6, %%tmm\\r\n\t"
      ".endr\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      "tilerelease"
      : "+r"(turns)
      : "m"(config)
      : "cc");
}

}  // namespace

void AddAmxCeilings(CeilingLoops& loops) {
  // Each instruction: 16 rows of 64 bytes by as many columns.
  loops.peaks[static_cast<int>(Peak::kByteDot)] = {
      ByteDot, int64_t{2} * kChains * kRows * kRows * kRowBytes};
}

}  // namespace millrace::kernels
