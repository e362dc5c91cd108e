#pragma once

#include "kernels/activation/activation.h"
#include "kernels/attention/attention.h"
#include "kernels/compute_mode.h"
#include "kernels/matmul/matmul.h"
#include "kernels/norm/norm.h"
#include "kernels/rope/rope.h"
#include "kernels/router/router.h"
#include "kernels/sampling/sampling.h"

namespace millrace::kernels {

// The version of every kernel that this process runs. Built once in main by
// BuildKernelTable and passed by reference; immutable.
struct KernelTable {
  Isa isa = Isa::kScalar;
  MatMulFn matmul[kNumComputeModes][kNumWeightFormats] = {};
  PackActivationsFn pack_activations[kNumActivationForms] = {};
  RmsNormFn rms_norm = nullptr;
  SwigluFn swiglu = nullptr;
  AddFn add = nullptr;
  AxpyFn axpy = nullptr;
  RopeFn rope = nullptr;
  KvStoreFn kv_store[kNumKvTypes] = {};
  AttentionFn attention[kNumKvTypes] = {};
  SoftmaxRouterFn softmax_router = nullptr;
  SamplingKernels sampling = {};
};

// Whether processor and operating system can run this ISA's versions.
bool HostSupports(Isa isa);
Isa BestIsa();
const char* IsaName(Isa isa);

// The scalar table overlaid with the versions of `isa`. HostSupports(isa).
KernelTable BuildKernelTable(Isa isa);

}  // namespace millrace::kernels
