#include "tests/property/ops/ops_array.h"

#define MILLRACE_ARRAY_LANES
#include "kernels/ops_vector.h"

namespace millrace::kernels {

void AddArrayOps(KernelTable& table) { AddVectorOps(table); }

}  // namespace millrace::kernels
