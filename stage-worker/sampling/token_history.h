#pragma once

#include <cstdint>

namespace millrace::worker {

// The distinct tokens of one sequence, with how often each stands in the
// answer; what the penalties of the sampler look at. One per sequence slot,
// changed by the step thread, read by the samplers that it runs. Allocates
// nothing.
class TokenHistory {
 public:
  struct Entry {
    int32_t token = 0;
    int32_t answer_count = 0;  // 0: in the prompt alone
  };
  struct Sequence {
    int64_t prompt_tokens = 0;  // positions below are its prompt
    int64_t tokens_max = 0;     // positions at most
  };

  // Starts a sequence over `vocab_size` ids. `memory`, which outlives this,
  // holds the numbers of model::TokenHistorySizeOf(vocab_size, tokens_max).
  TokenHistory(int32_t* memory, int64_t vocab_size, const Sequence& sequence);

  // Takes the token at one position in; each position of a sequence once, in
  // any order. Tokens beyond the room are dropped.
  void Observe(int64_t position, int32_t token);

  [[nodiscard]] int64_t num_entries() const { return num_entries_; }
  // In the order of first sight; 0 <= index < num_entries().
  [[nodiscard]] Entry entry(int64_t index) const {
    return {tokens_[index], answer_counts_[index]};
  }

 private:
  int64_t prompt_tokens_;
  int64_t entries_max_;
  int64_t num_entries_ = 0;
  int32_t* tokens_;         // [entries_max_]
  int32_t* answer_counts_;  // [entries_max_]
  // Open addressing over tokens: index of an entry, or -1. [table_mask_ + 1], a
  // power of two, at most half full.
  int32_t* table_;
  uint32_t table_mask_;
};

}  // namespace millrace::worker
