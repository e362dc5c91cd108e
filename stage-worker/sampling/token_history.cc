#include "stage-worker/sampling/token_history.h"

#include <algorithm>

#include "model/spec/stage_memory.h"

namespace millrace::worker {

TokenHistory::TokenHistory(int32_t* memory, int64_t vocab_size,
                           const Sequence& sequence)
    : prompt_tokens_(sequence.prompt_tokens) {
  const model::TokenHistorySize size =
      model::TokenHistorySizeOf(vocab_size, sequence.tokens_max);
  entries_max_ = size.entries;
  tokens_ = memory;
  answer_counts_ = tokens_ + size.entries;
  table_ = answer_counts_ + size.entries;
  table_mask_ = static_cast<uint32_t>(size.table - 1);
  std::fill(table_, table_ + size.table, -1);
}

void TokenHistory::Observe(int64_t position, int32_t token) {
  uint32_t at = (static_cast<uint32_t>(token) * 0x9E3779B1u) & table_mask_;
  while (table_[at] >= 0 && tokens_[table_[at]] != token) {
    at = (at + 1) & table_mask_;
  }
  if (table_[at] < 0) {
    if (num_entries_ == entries_max_) {
      return;
    }
    table_[at] = static_cast<int32_t>(num_entries_);
    tokens_[num_entries_] = token;
    answer_counts_[num_entries_] = 0;
    ++num_entries_;
  }
  if (position >= prompt_tokens_) {
    ++answer_counts_[table_[at]];
  }
}

}  // namespace millrace::worker
