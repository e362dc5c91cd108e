#include "stage-worker/kv/kv_pool.h"

#include "base/check.h"

namespace millrace::worker {

KvPool::KvPool(const model::KvGroup& group, int64_t num_slots)
    : window_(group.window),
      blocks_per_sequence_(group.blocks_per_sequence),
      num_blocks_(group.num_blocks),
      num_slots_(num_slots),
      tables_(static_cast<size_t>(num_slots * group.blocks_per_sequence),
              kNoBlock) {
  free_.reserve(static_cast<size_t>(num_blocks_));
  ReleaseAll();
}

bool KvPool::Append(int64_t slot, int64_t position) {
  MILLRACE_DCHECK(slot >= 0 && slot < num_slots_ && position >= 0);
  const int64_t block = position / model::kKvBlockPositions;
  int32_t& entry = tables_[static_cast<size_t>(slot * blocks_per_sequence_ +
                                               block % blocks_per_sequence_)];
  // A ring's old block is simply written over: its positions have left the
  // window of every row to come.
  if (entry != kNoBlock) {
    return true;
  }
  if (free_.empty()) {
    return false;
  }
  entry = free_.back();
  free_.pop_back();
  return true;
}

int32_t KvPool::BlockOf(int64_t slot, int64_t position) const {
  const int64_t block = position / model::kKvBlockPositions;
  return Table(slot)[block % blocks_per_sequence_];
}

void KvPool::Release(int64_t slot) {
  for (int64_t i = 0; i < blocks_per_sequence_; ++i) {
    int32_t& entry =
        tables_[static_cast<size_t>(slot * blocks_per_sequence_ + i)];
    if (entry != kNoBlock) {
      free_.push_back(entry);
      entry = kNoBlock;
    }
  }
}

void KvPool::ReleaseAll() {
  std::fill(tables_.begin(), tables_.end(), kNoBlock);
  free_.clear();
  for (int64_t block = num_blocks_ - 1; block >= 0; --block) {
    free_.push_back(static_cast<int32_t>(block));
  }
}

}  // namespace millrace::worker
