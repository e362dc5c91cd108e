#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace millrace::worker {

// The distinct tokens of one sequence, with how often each stands in the
// answer; what the penalties of the sampler look at. One per sequence slot,
// owned and used by the step thread. Sized once; nothing allocates afterwards.
class TokenHistory {
 public:
  struct Entry {
    int32_t token = 0;
    int32_t answer_count = 0;  // 0: in the prompt alone
  };

  // Room for the distinct tokens of a sequence of at most `tokens_max`
  // positions over `vocab_size` ids.
  TokenHistory(int64_t vocab_size, int64_t tokens_max);

  // What an object of this size allocates.
  static int64_t AllocatedBytes(int64_t vocab_size, int64_t tokens_max);

  // Starts a sequence: positions below `prompt_tokens` are its prompt.
  void Open(int64_t prompt_tokens);

  // Takes the token at one position in; each position of a sequence once, in
  // any order. Tokens beyond the room that the constructor gave are dropped.
  void Observe(int64_t position, int32_t token);

  // In the order of first sight.
  [[nodiscard]] absl::Span<const Entry> entries() const {
    return {entries_.data(), static_cast<size_t>(num_entries_)};
  }

 private:
  int64_t prompt_tokens_ = 0;
  int64_t num_entries_ = 0;
  std::vector<Entry> entries_;
  // Open addressing over tokens: index into entries_, or -1. A power of two, at
  // most half full.
  std::vector<int32_t> table_;
};

}  // namespace millrace::worker
