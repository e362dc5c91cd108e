#pragma once

#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "proto/kernel_use.h"

namespace millrace::cli {

// The version that a table runs for a product, as `avx512bf16`; static storage.
const char* ProductVersion(const kernels::KernelTable& table,
                           kernels::WeightFormat format,
                           kernels::ComputeMode compute);

// What a table runs, for metrics: each kernel and mode with the versions that
// some format of it has.
std::vector<control::KernelUse> KernelUses(const kernels::KernelTable& table);

// Kernel versions compiled into this program that the host cannot run.
std::vector<std::string> LackingVersions();

}  // namespace millrace::cli
