#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace::worker {

// From so many tokens on a product is bound by arithmetic.
inline constexpr int64_t kManyTokens = 64;

// How the tokens of a product are cut. Many tokens form blocks that are packed
// and multiplied by themselves: all tiles meet a block while it is in the
// second-level cache, and weights are decoded once for it.
class TokenBlocks {
 public:
  explicit TokenBlocks(int64_t num_tokens) : num_tokens_(num_tokens) {
    if (num_tokens < kManyTokens) {
      block_tokens_ = std::max<int64_t>(num_tokens, 1);
      return;
    }
    const int64_t panels = (num_tokens + kPanel - 1) / kPanel;
    const int64_t blocks = (panels + kPanelsMost - 1) / kPanelsMost;
    block_tokens_ = (panels + blocks - 1) / blocks * kPanel;
  }

  [[nodiscard]] int64_t num_tokens() const { return num_tokens_; }
  [[nodiscard]] int64_t num_blocks() const {
    return (num_tokens_ + block_tokens_ - 1) / block_tokens_;
  }
  // First token of a block; a multiple of 16.
  [[nodiscard]] int64_t BeginOf(int64_t block) const {
    return block * block_tokens_;
  }
  [[nodiscard]] int64_t TokensOf(int64_t block) const {
    return std::min(block_tokens_, num_tokens_ - BeginOf(block));
  }

 private:
  // Whole panels, so that each block begins on a line of packed memory. Kernels
  // that decode weights ahead of the products do it once for so many panels.
  static constexpr int64_t kPanel = 16;
  static constexpr int64_t kPanelsMost = 16;

  int64_t num_tokens_;
  int64_t block_tokens_;
};

}  // namespace millrace::worker
