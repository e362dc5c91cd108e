#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/spec/stage_memory.h"

namespace millrace::worker {

// Blocks of one KV group: which are free, and per sequence slot which block
// holds which positions. The bytes live in the stage's memory; block b of a
// layer is at that layer's pool + b * its block bytes. Step thread only.
// Exhausted: Append returns false; the coordinator's ledger makes that a bug of
// the sender, and the stage drops the link.
class KvPool {
 public:
  KvPool(const model::KvGroup& group, int64_t num_slots);

  // Makes sure that the block of `position` is there. Positions of a slot come
  // in ascending order.
  [[nodiscard]] bool Append(int64_t slot, int64_t position);
  // Gives all blocks of the slot back.
  void Release(int64_t slot);
  void ReleaseAll();

  // [blocks_per_sequence]; entry (position / 64) % blocks_per_sequence.
  [[nodiscard]] const int32_t* Table(int64_t slot) const {
    return tables_.data() + slot * blocks_per_sequence_;
  }
  [[nodiscard]] int32_t BlockOf(int64_t slot, int64_t position) const;
  [[nodiscard]] int64_t blocks_per_sequence() const {
    return blocks_per_sequence_;
  }
  [[nodiscard]] int64_t window() const { return window_; }
  [[nodiscard]] int64_t num_blocks() const { return num_blocks_; }
  [[nodiscard]] int64_t num_used() const {
    return num_blocks_ - static_cast<int64_t>(free_.size());
  }

 private:
  static constexpr int32_t kNoBlock = -1;

  const int64_t window_;
  const int64_t blocks_per_sequence_;
  const int64_t num_blocks_;
  const int64_t num_slots_;
  std::vector<int32_t> tables_;  // [num_slots, blocks_per_sequence]
  std::vector<int32_t> free_;    // stack
};

}  // namespace millrace::worker
