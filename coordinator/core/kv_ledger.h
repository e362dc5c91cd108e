#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/core_config.h"

namespace millrace::coordinator {

// Who has how much of every stage's KV blocks and sequence slots. Reservations
// are for the worst case, so that an admitted request is never evicted.
// Owned by the core; pure.
class KvLedger {
 public:
  explicit KvLedger(const CoreConfig& config);

  // Longest prompt + answer that fits an empty pipeline, within the context.
  [[nodiscard]] int64_t longest() const { return longest_; }
  // The stage that sets longest(); -1: the context does.
  [[nodiscard]] int64_t longest_stage() const { return longest_stage_; }
  // Sequences that may be open at a time.
  [[nodiscard]] int64_t slots() const { return slots_; }

  // First stage that has no room for one more sequence of `positions` now, or
  // nothing when all have.
  [[nodiscard]] std::optional<int64_t> BindingStage(int64_t positions) const;
  // What is short there, for a message: "KV blocks of stage 'w1'".
  [[nodiscard]] std::string Shortage(int64_t stage, int64_t positions) const;

  // Requires BindingStage(positions) to be nothing.
  void Reserve(int64_t positions);
  // Gives back what Reserve(positions) took.
  void Release(int64_t positions);
  // All of it: the stages have dropped every sequence.
  void Reset();

  [[nodiscard]] int64_t sequences() const { return sequences_; }
  [[nodiscard]] int64_t num_stages() const {
    return static_cast<int64_t>(stages_.size());
  }
  // Blocks of all pools of one stage.
  [[nodiscard]] int64_t BlocksUsed(int64_t stage) const;
  [[nodiscard]] int64_t BlocksTotal(int64_t stage) const;

 private:
  struct Stage {
    StagePool pool;
    int64_t full_used = 0;
    std::vector<int64_t> windows_used;
  };

  std::vector<Stage> stages_;
  int64_t sequences_ = 0;
  int64_t slots_ = 0;
  int64_t longest_ = 0;
  int64_t longest_stage_ = -1;
};

}  // namespace millrace::coordinator
