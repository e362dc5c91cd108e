#include "kernels/kernel_versions.h"

#include <iterator>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "kernels/ceilings/ceilings_versions.h"
#include "kernels/matmul/matmul_versions.h"
#include "kernels/ops_versions.h"

namespace millrace::kernels {
namespace {

constexpr KernelVersion kKernelVersions[] = {
    {"scalar", Isa::kScalar, [] { return true; },
     [](KernelTable& table) {
       AddScalarMatMul(table);
       AddScalarOps(table);
     },
     AddScalarCeilings},
#if defined(MILLRACE_SCALAR_KERNELS)
// Sanitizer builds: cmake/Toolchain.cmake.
#elif defined(__x86_64__)
    {"avx2", Isa::kAvx2,
     [] {
       return __builtin_cpu_supports("avx2") != 0 &&
              __builtin_cpu_supports("fma") != 0 &&
              __builtin_cpu_supports("f16c") != 0;
     },
     [](KernelTable& table) {
       AddAvx2MatMul(table);
       AddAvx2Ops(table);
     },
     AddAvx2Ceilings},
    {"avxvnni", Isa::kAvx2,
     [] { return HostSupports(Isa::kAvx2) && HostHasByteDot256(); },
     AddAvxVnniMatMul, AddAvxVnniCeilings},
    {"avx512", Isa::kAvx512,
     [] {
       return HostSupports(Isa::kAvx2) &&
              __builtin_cpu_supports("avx512f") != 0 &&
              __builtin_cpu_supports("avx512bw") != 0 &&
              __builtin_cpu_supports("avx512vl") != 0 &&
              __builtin_cpu_supports("avx512dq") != 0 &&
              __builtin_cpu_supports("avx512vnni") != 0;
     },
     [](KernelTable& table) {
       AddAvx512MatMul(table);
       AddAvx512Ops(table);
     },
     AddAvx512Ceilings},
    {"avx512bf16", Isa::kAvx512,
     [] { return HostSupports(Isa::kAvx512) && HostHasPairedDot(); },
     AddAvx512Bf16MatMul, AddAvx512Bf16Ceilings},
    {"amx", Isa::kAvx512,
     [] { return HostSupports(Isa::kAvx512) && HostHasTiles(); }, AddAmxMatMul,
     AddAmxCeilings},
#elif defined(__aarch64__)
    {"neon", Isa::kNeon,
     [] { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0; },
     [](KernelTable& table) {
       AddNeonMatMul(table);
       AddNeonOps(table);
     },
     AddNeonCeilings},
    {"neondot", Isa::kNeon,
     [] { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; },
     AddNeonDotMatMul, AddNeonDotCeilings},
#endif
};

constexpr const char* kComputeNames[] = {"fast", "exact"};
constexpr const char* kActivationNames[] = {"f32", "bf16", "int8"};
constexpr const char* kKvNames[] = {"f32", "f16", "bf16", "int8"};
static_assert(std::size(kComputeNames) == kNumComputeModes);
static_assert(std::size(kActivationNames) == kNumActivationForms);
static_assert(std::size(kKvNames) == kNumKvTypes);

// Calls visit(choice, same) for every slot, in order: its names, and whether
// both tables hold the same function there.
template <typename Visit>
void CompareTables(const KernelTable& a, const KernelTable& b, Visit visit) {
  for (int mode = 0; mode < kNumComputeModes; ++mode) {
    for (int format = 0; format < kNumWeightFormats; ++format) {
      visit({"matmul", TraitsOf(static_cast<WeightFormat>(format)).name,
             kComputeNames[mode], ""},
            a.matmul[mode][format] == b.matmul[mode][format]);
    }
  }
  for (int form = 0; form < kNumActivationForms; ++form) {
    visit({"pack_activations", kActivationNames[form], "", ""},
          a.pack_activations[form] == b.pack_activations[form]);
  }
  for (int type = 0; type < kNumKvTypes; ++type) {
    visit({"attention", kKvNames[type], "", ""},
          a.attention[type] == b.attention[type]);
    visit({"kv_store", kKvNames[type], "", ""},
          a.kv_store[type] == b.kv_store[type]);
  }
  visit({"rms_norm", "", "", ""}, a.rms_norm == b.rms_norm);
  visit({"swiglu", "", "", ""}, a.swiglu == b.swiglu);
  visit({"add", "", "", ""}, a.add == b.add);
  visit({"axpy", "", "", ""}, a.axpy == b.axpy);
  visit({"rope", "", "", ""}, a.rope == b.rope);
  visit({"softmax_router", "", "", ""}, a.softmax_router == b.softmax_router);
  visit({"row_max", "", "", ""}, a.sampling.row_max == b.sampling.row_max);
  visit({"exp_block_sums", "", "", ""},
        a.sampling.exp_block_sums == b.sampling.exp_block_sums);
  visit({"divide", "", "", ""}, a.sampling.divide == b.sampling.divide);
}

}  // namespace

std::span<const KernelVersion> KernelVersions() { return kKernelVersions; }

std::vector<KernelChoice> DescribeKernels(const KernelTable& table) {
  std::vector<KernelChoice> choices;
  CompareTables(table, table, [&](const KernelChoice& choice, bool) {
    choices.push_back(choice);
  });
  for (const KernelVersion& version : KernelVersions()) {
    // An `add` may hold the features' own instructions.
    if (!version.host_supports()) {
      continue;
    }
    KernelTable own;
    version.add(own);
    size_t slot = 0;
    CompareTables(table, own, [&](const KernelChoice&, bool same) {
      if (same) {
        choices[slot].version = version.name;
      }
      ++slot;
    });
  }
  return choices;
}

}  // namespace millrace::kernels
