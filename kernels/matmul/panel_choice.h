#pragma once

#include <cstdint>

#include "kernels/matmul/tile_walk.h"

namespace millrace::kernels {
namespace {

// Instances exist for these numbers of tokens; a panel between two takes the
// larger one, whose surplus sums are dropped: what they read lies in the next
// group's records or in the slack behind the packed activations.
template <template <int> typename Panel>
PanelFn ChoosePanel(int64_t tokens) {
  switch (tokens) {
    case 1:
      return Panel<1>::Run;
    case 2:
      return Panel<2>::Run;
    case 3:
      return Panel<3>::Run;
    case 4:
      return Panel<4>::Run;
    case 5:
    case 6:
      return Panel<6>::Run;
    case 7:
    case 8:
      return Panel<8>::Run;
    case 9:
    case 10:
      return Panel<10>::Run;
    case 11:
    case 12:
      return Panel<12>::Run;
    case 13:
    case 14:
      return Panel<14>::Run;
    default:
      return Panel<16>::Run;
  }
}

}  // namespace
}  // namespace millrace::kernels
