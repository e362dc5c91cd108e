#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/matmul.h"

// Packing of activations that stay floats: a word of 32 bits for every column
// (f32) or pair of columns (bf16) of a token, and the words of the tokens of a
// panel side by side, which is a transpose. See tile_walk.h for the unnamed
// namespace.
namespace millrace::kernels {
namespace {

// kBf16FlushBelow (quant/half.h) in the upper half of a word.
constexpr int kWordFlushBelow = 0x2680 << 16;

// The tokens of a panel.
struct PanelRows {
  const float* row[kMaxPanelTokens];
  int64_t tokens;
};

// Words says how:
//   Vector, kLanes           of words; 8 or 16
//   kColumns                 of a word, 1 or 2
//   Load(row, left)          the words of a token from `row` on, 0 beyond the
//                            `left` columns that there are
//   Zero()
//   Transpose(vectors)       kLanes of them
//   Store(to, vector, num)   its first words, num <= kLanes
template <typename Words>
void PackPanelWords(const PanelRows& rows, int64_t cols, std::byte* to) {
  constexpr int64_t kLanes = Words::kLanes;
  constexpr int64_t kStep = kLanes * Words::kColumns;
  const int64_t words = (cols + Words::kColumns - 1) / Words::kColumns;
  for (int64_t k = 0; k < cols; k += kStep) {
    const int64_t done = k / Words::kColumns;
    const int64_t num = words - done < kLanes ? words - done : kLanes;
    std::byte* const at = to + done * rows.tokens * 4;
    if (rows.tokens == 1) {
      Words::Store(at, Words::Load(rows.row[0] + k, cols - k), num);
      continue;
    }
    for (int64_t t = 0; t < rows.tokens; t += kLanes) {
      const int64_t left = rows.tokens - t;
      const int64_t some = left < kLanes ? left : kLanes;
      typename Words::Vector vectors[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        vectors[i] = i < some ? Words::Load(rows.row[t + i] + k, cols - k)
                              : Words::Zero();
      }
      Words::Transpose(vectors);
      for (int64_t i = 0; i < num; ++i) {
        Words::Store(at + (i * rows.tokens + t) * 4, vectors[i], some);
      }
    }
  }
}

template <typename Words>
void PackWords(const PackActivationsArgs& args, int64_t panel_begin,
               int64_t panel_end) {
  const int64_t token_bytes =
      (args.cols + Words::kColumns - 1) / Words::kColumns * 4;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t begin = PanelBegin(args.num_tokens, panel);
    PanelRows rows;
    rows.tokens = PanelBegin(args.num_tokens, panel + 1) - begin;
    for (int64_t t = 0; t < rows.tokens; ++t) {
      const int64_t token = begin + t;
      const int64_t row =
          args.row_index == nullptr ? token : args.row_index[token];
      rows.row[t] = args.x + row * args.x_stride;
    }
    PackPanelWords<Words>(rows, args.cols, args.packed + begin * token_bytes);
  }
}

}  // namespace
}  // namespace millrace::kernels
