#include "tests/property/ops/ops_array.h"

#include "kernels/ops_vector.h"

namespace millrace::kernels {

void AddArrayOps(KernelTable& table) { AddVectorOps(table); }

}  // namespace millrace::kernels
