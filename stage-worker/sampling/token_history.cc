#include "stage-worker/sampling/token_history.h"

#include <algorithm>
#include <bit>

namespace millrace::worker {
namespace {

int64_t DistinctMax(int64_t vocab_size, int64_t tokens_max) {
  return std::max<int64_t>(std::min(vocab_size, tokens_max), 1);
}

int64_t TableSize(int64_t distinct_max) {
  return static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(2 * distinct_max)));
}

}  // namespace

TokenHistory::TokenHistory(int64_t vocab_size, int64_t tokens_max)
    : entries_(DistinctMax(vocab_size, tokens_max)),
      table_(TableSize(DistinctMax(vocab_size, tokens_max)), -1) {}

int64_t TokenHistory::AllocatedBytes(int64_t vocab_size, int64_t tokens_max) {
  const int64_t distinct_max = DistinctMax(vocab_size, tokens_max);
  return distinct_max * static_cast<int64_t>(sizeof(Entry)) +
         TableSize(distinct_max) * static_cast<int64_t>(sizeof(int32_t));
}

void TokenHistory::Open(int64_t prompt_tokens) {
  prompt_tokens_ = prompt_tokens;
  num_entries_ = 0;
  std::fill(table_.begin(), table_.end(), -1);
}

void TokenHistory::Observe(int64_t position, int32_t token) {
  const auto mask = static_cast<uint32_t>(table_.size() - 1);
  uint32_t at = (static_cast<uint32_t>(token) * 0x9E3779B1u) & mask;
  while (table_[at] >= 0 && entries_[table_[at]].token != token) {
    at = (at + 1) & mask;
  }
  if (table_[at] < 0) {
    if (num_entries_ == static_cast<int64_t>(entries_.size())) {
      return;
    }
    table_[at] = static_cast<int32_t>(num_entries_);
    entries_[num_entries_] = {.token = token, .answer_count = 0};
    ++num_entries_;
  }
  if (position >= prompt_tokens_) {
    ++entries_[table_[at]].answer_count;
  }
}

}  // namespace millrace::worker
