#pragma once

#include "kernels/matmul/matmul_pair.h"

namespace millrace::kernels {

extern const MatMulPair kMatMulAvx2F32;
extern const MatMulPair kMatMulAvx2F16;
extern const MatMulPair kMatMulAvx2Bf16;
extern const MatMulPair kMatMulAvx2Q40;
extern const MatMulPair kMatMulAvx2Q41;
extern const MatMulPair kMatMulAvx2Q50;
extern const MatMulPair kMatMulAvx2Q51;
extern const MatMulPair kMatMulAvx2Q80;
extern const MatMulPair kMatMulAvx2Q4K;
extern const MatMulPair kMatMulAvx2Q5K;
extern const MatMulPair kMatMulAvx2Q6K;
extern const MatMulPair kMatMulAvx2Q2K;
extern const MatMulPair kMatMulAvx2Q3K;
extern const MatMulPair kMatMulAvx2Iq4Nl;
extern const MatMulPair kMatMulAvx2Mxfp4;
extern const MatMulPair kMatMulAvx2Int4;
extern const MatMulPair kMatMulAvx2Int4F16;
extern const MatMulPair kMatMulAvx2Int4Zero;
extern const MatMulPair kMatMulAvx2Int4ZeroF16;
extern const MatMulPair kMatMulAvx2Mlx4;
extern const MatMulPair kMatMulAvx2Mlx4F16;
extern const MatMulPair kMatMulAvx2Mlx8;
extern const MatMulPair kMatMulAvx2Mlx8F16;
extern const MatMulPair kMatMulAvx2Fp8;

void PackInt8Avx2(const PackActivationsArgs& args, int64_t panel_begin,
                  int64_t panel_end);
void PackF32Avx2(const PackActivationsArgs& args, int64_t panel_begin,
                 int64_t panel_end);
void PackBf16Avx2(const PackActivationsArgs& args, int64_t panel_begin,
                  int64_t panel_end);

}  // namespace millrace::kernels
