#pragma once

namespace millrace::kernels {

// Whether this processor streams weights faster when they are asked for ahead
// of vectors of 512 bits, and from several places in turn: Intel's do (Sapphire
// Rapids: 1.15 to 1.4, and 1.2 to 1.45 beyond that), AMD's lose (Zen 4: 0.6 to
// 0.85).
bool AsksAhead();

}  // namespace millrace::kernels
