#pragma once

#include <string>
#include <vector>

#include "kernels/kernel_table.h"

namespace millrace::cli {

// The version that a table runs for a product, as `avx512bf16`; static storage.
const char* ProductVersion(const kernels::KernelTable& table,
                           kernels::WeightFormat format,
                           kernels::ComputeMode compute);

// Kernel versions compiled into this program that the host cannot run.
std::vector<std::string> LackingVersions();

}  // namespace millrace::cli
