#include "kernels/kernel_table.h"

#include "kernels/kernel_versions.h"

namespace millrace::kernels {
namespace {

// Whether a table for `isa` holds the versions that `part` brings in.
bool Includes(Isa isa, Isa part) {
  return part == isa || part == Isa::kScalar ||
         (isa == Isa::kAvx512 && part == Isa::kAvx2);
}

}  // namespace

bool HostSupports(Isa isa) {
  for (const KernelVersion& version : KernelVersions()) {
    // The first of an ISA's versions is the one that carries its name.
    if (version.isa == isa) {
      return version.host_supports();
    }
  }
  return false;
}

Isa BestIsa() {
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kNeon}) {
    if (HostSupports(isa)) {
      return isa;
    }
  }
  return Isa::kScalar;
}

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kNeon:
      return "neon";
  }
  return "unknown";
}

KernelTable BuildKernelTable(Isa isa) {
  KernelTable table;
  table.isa = isa;
  for (const KernelVersion& version : KernelVersions()) {
    if (Includes(isa, version.isa) && version.host_supports()) {
      version.add(table);
    }
  }
  return table;
}

CeilingLoops BuildCeilingLoops(Isa isa) {
  CeilingLoops loops;
  for (const KernelVersion& version : KernelVersions()) {
    if (Includes(isa, version.isa) && version.host_supports()) {
      version.add_ceilings(loops);
    }
  }
  return loops;
}

}  // namespace millrace::kernels
