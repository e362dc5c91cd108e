#pragma once

#include <span>
#include <vector>

#include "kernels/ceilings/ceilings.h"
#include "kernels/kernel_table.h"

namespace millrace::kernels {

// The kernels that are written for one set of processor features. A table is
// the scalar version with others laid over it; what is added to the list in
// kernel_versions.cc is built into tables, shown by `millrace probe` and in
// /metrics, and needs no other mention.
struct KernelVersion {
  const char* name;  // as shown to people
  Isa isa;           // the choice of --kernels that brings it in
  bool (*host_supports)();
  void (*add)(KernelTable& table);  // fills the slots that it implements
  // The same for the loops that show what such kernels could reach.
  void (*add_ceilings)(CeilingLoops& loops);
};

// Those compiled into this program, in the order in which they are laid over
// each other.
std::span<const KernelVersion> KernelVersions();

// One slot of a table and the version that it runs.
struct KernelChoice {
  const char* kernel;   // matmul, attention, ...
  const char* format;   // of weights, activations or KV; empty: there is one
  const char* compute;  // fast or exact; empty: the same in both
  const char* version;  // empty: none of KernelVersions()
};

// Every slot of a table, in a fixed order. Allocates; not for the data path.
std::vector<KernelChoice> DescribeKernels(const KernelTable& table);

}  // namespace millrace::kernels
