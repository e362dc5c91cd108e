#pragma once

#include "kernels/kernel_table.h"

namespace millrace::kernels {

// Overlays the versions over kernels/vector/lanes_array.h, which serve no
// processor that we build for and are tested with the others.
void AddArrayOps(KernelTable& table);

}  // namespace millrace::kernels
