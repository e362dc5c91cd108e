#pragma once

#include "kernels/matmul/matmul_pair.h"

namespace millrace::kernels {

extern const MatMulPair kMatMulAvx512F32;
extern const MatMulPair kMatMulAvx512F16;
extern const MatMulPair kMatMulAvx512Bf16;
extern const MatMulPair kMatMulAvx512Q40;
extern const MatMulPair kMatMulAvx512Q41;
extern const MatMulPair kMatMulAvx512Q50;
extern const MatMulPair kMatMulAvx512Q51;
extern const MatMulPair kMatMulAvx512Q80;
extern const MatMulPair kMatMulAvx512Q4K;
extern const MatMulPair kMatMulAvx512Q5K;
extern const MatMulPair kMatMulAvx512Q6K;
extern const MatMulPair kMatMulAvx512Q2K;
extern const MatMulPair kMatMulAvx512Q3K;
extern const MatMulPair kMatMulAvx512Iq4Nl;
extern const MatMulPair kMatMulAvx512Mxfp4;
extern const MatMulPair kMatMulAvx512Int4;
extern const MatMulPair kMatMulAvx512Int4F16;
extern const MatMulPair kMatMulAvx512Int4Zero;
extern const MatMulPair kMatMulAvx512Int4ZeroF16;
extern const MatMulPair kMatMulAvx512Mlx4;
extern const MatMulPair kMatMulAvx512Mlx4F16;
extern const MatMulPair kMatMulAvx512Mlx8;
extern const MatMulPair kMatMulAvx512Mlx8F16;
extern const MatMulPair kMatMulAvx512Fp8;

// BF16 and FP8 weights in fast mode by the paired dot instruction. Only where
// the processor has it and PairedDotIsTwoFusedSteps().
void MatMulAvx512Bf16Pairs(const MatMulArgs& args, int64_t tile_begin,
                           int64_t tile_end);
// The same, but many tokens of BF16 as kMatMulAvx512Bf16 does.
void MatMulAvx512FewBf16Pairs(const MatMulArgs& args, int64_t tile_begin,
                              int64_t tile_end);
void MatMulAvx512Fp8Pairs(const MatMulArgs& args, int64_t tile_begin,
                          int64_t tile_end);
bool PairedDotIsTwoFusedSteps();

void PackInt8Avx512(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end);
void PackF32Avx512(const PackActivationsArgs& args, int64_t panel_begin,
                   int64_t panel_end);
void PackBf16Avx512(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end);

}  // namespace millrace::kernels
