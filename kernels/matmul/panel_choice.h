#pragma once

#include <cstdint>

#include "kernels/matmul/tile_walk.h"

namespace millrace::kernels {
namespace {

// One instance for each number of tokens: sums live in registers, and nothing
// is read or computed for tokens that are not there.
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
      return Panel<5>::Run;
    case 6:
      return Panel<6>::Run;
    case 7:
      return Panel<7>::Run;
    case 8:
      return Panel<8>::Run;
    case 9:
      return Panel<9>::Run;
    case 10:
      return Panel<10>::Run;
    case 11:
      return Panel<11>::Run;
    case 12:
      return Panel<12>::Run;
    case 13:
      return Panel<13>::Run;
    case 14:
      return Panel<14>::Run;
    case 15:
      return Panel<15>::Run;
    default:
      return Panel<16>::Run;
  }
}

}  // namespace
}  // namespace millrace::kernels
