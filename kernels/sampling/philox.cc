#include "kernels/sampling/sampling.h"

namespace millrace::kernels {

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011): ten
// rounds, the key bumped by the Weyl constants between them.
PhiloxBlock Philox4x32(uint64_t key, PhiloxBlock counter) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32);
  uint32_t* c = counter.words;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * c[0];
    const uint64_t product1 = kMultiplier1 * c[2];
    const uint32_t c0 = static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ key0;
    const uint32_t c2 = static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ key1;
    c[0] = c0;
    c[1] = static_cast<uint32_t>(product1);
    c[2] = c2;
    c[3] = static_cast<uint32_t>(product0);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

double UniformDraw(uint64_t seed, uint64_t position, uint32_t choice) {
  const PhiloxBlock counter{{static_cast<uint32_t>(position),
                             static_cast<uint32_t>(position >> 32), choice, 0}};
  const PhiloxBlock r = Philox4x32(seed, counter);
  const uint64_t bits = (static_cast<uint64_t>(r.words[0]) << 32) + r.words[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace millrace::kernels
