#pragma once

namespace millrace::kernels {

struct CeilingLoops;

// Each fills the loops that it implements; listed in kernel_versions.cc beside
// the kernels of the same instructions.
void AddScalarCeilings(CeilingLoops& loops);
void AddAvx2Ceilings(CeilingLoops& loops);
void AddAvxVnniCeilings(CeilingLoops& loops);
void AddAvx512Ceilings(CeilingLoops& loops);
void AddAvx512Bf16Ceilings(CeilingLoops& loops);
void AddAmxCeilings(CeilingLoops& loops);
void AddNeonCeilings(CeilingLoops& loops);
void AddNeonDotCeilings(CeilingLoops& loops);

}  // namespace millrace::kernels
