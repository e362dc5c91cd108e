#pragma once

#include <cstdint>

#include "kernels/activation/activation.h"
#include "kernels/attention/attention.h"
#include "kernels/norm/norm.h"
#include "kernels/rope/rope.h"
#include "kernels/router/router.h"
#include "kernels/sampling/sampling.h"

// The definitions: plain loops that every other version equals bit for bit.
// Each is described at its type, in the header of its operation.
namespace millrace::kernels::scalar {

void RmsNorm(const RmsNormArgs& args, int64_t row_begin, int64_t row_end);
void Swiglu(const SwigluArgs& args, int64_t row_begin, int64_t row_end);
void Add(const float* x, float* y, int64_t n);
void Axpy(float w, const float* x, float* y, int64_t n);
void Rope(const RopeArgs& args);
void SoftmaxRouter(const SoftmaxRouterArgs& args, int64_t row_begin,
                   int64_t row_end);

bool KvStoreF32(const KvStoreArgs& args);
bool KvStoreF16(const KvStoreArgs& args);
bool KvStoreBf16(const KvStoreArgs& args);
bool KvStoreInt8(const KvStoreArgs& args);
void AttentionF32(const AttentionArgs& args, int64_t item_begin,
                  int64_t item_end, std::byte* scratch);
void AttentionF16(const AttentionArgs& args, int64_t item_begin,
                  int64_t item_end, std::byte* scratch);
void AttentionBf16(const AttentionArgs& args, int64_t item_begin,
                   int64_t item_end, std::byte* scratch);
void AttentionInt8(const AttentionArgs& args, int64_t item_begin,
                   int64_t item_end, std::byte* scratch);

float RowMax(const float* x, int64_t n);
void ExpBlockSums(const float* x, float max, int64_t n, float* out,
                  float* block_sums);
void Divide(const float* x, float divisor, int64_t n, float* out);

}  // namespace millrace::kernels::scalar
