#include "coordinator/core/kv_ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace millrace::coordinator {
namespace {

int64_t BlocksOf(int64_t positions) {
  return (positions + kKvBlockPositions - 1) / kKvBlockPositions;
}

int64_t RingBlocks(const WindowPool& window, int64_t positions) {
  return std::min(window.ring_blocks, BlocksOf(positions));
}

// Positions beyond which a sequence alone would not fit; kNone where the
// length does not matter.
constexpr int64_t kNone = INT64_MAX;

int64_t LongestAlone(const StagePool& stage) {
  int64_t longest = kNone;
  if (stage.full_blocks > 0) {
    longest = stage.full_blocks * kKvBlockPositions;
  }
  for (const WindowPool& window : stage.windows) {
    if (window.pool_blocks < window.ring_blocks) {
      longest = std::min(longest, window.pool_blocks * kKvBlockPositions);
    }
  }
  return longest;
}

}  // namespace

KvLedger::KvLedger(const CoreConfig& config)
    : slots_(config.Slots()), longest_(config.context) {
  for (const StagePool& pool : config.stages) {
    if (const int64_t alone = LongestAlone(pool); alone < longest_) {
      longest_ = alone;
      longest_stage_ = num_stages();
    }
    stages_.push_back(
        Stage{.pool = pool,
              .windows_used = std::vector<int64_t>(pool.windows.size())});
  }
}

std::optional<int64_t> KvLedger::BindingStage(int64_t positions) const {
  for (int64_t index = 0; index < num_stages(); ++index) {
    const Stage& stage = stages_[static_cast<size_t>(index)];
    if (sequences_ >= stage.pool.slots) {
      return index;
    }
    if (stage.pool.full_blocks > 0 &&
        stage.full_used + BlocksOf(positions) > stage.pool.full_blocks) {
      return index;
    }
    for (size_t w = 0; w < stage.windows_used.size(); ++w) {
      const WindowPool& window = stage.pool.windows[w];
      if (stage.windows_used[w] + RingBlocks(window, positions) >
          window.pool_blocks) {
        return index;
      }
    }
  }
  return std::nullopt;
}

std::string KvLedger::Shortage(int64_t stage, int64_t positions) const {
  const Stage& where = stages_[static_cast<size_t>(stage)];
  const bool no_slot = sequences_ >= where.pool.slots;
  const std::string of_stage =
      absl::StrCat(" of stage '", where.pool.name, "'");
  if (no_slot) {
    return absl::StrCat("sequence slots", of_stage, " (all ", where.pool.slots,
                        " are taken)");
  }
  return absl::StrCat("KV blocks", of_stage, " (", BlocksUsed(stage), " of ",
                      BlocksTotal(stage), " are reserved, ", positions,
                      " positions wanted)");
}

void KvLedger::Reserve(int64_t positions) {
  MILLRACE_DCHECK(!BindingStage(positions).has_value());
  ++sequences_;
  for (Stage& stage : stages_) {
    if (stage.pool.full_blocks > 0) {
      stage.full_used += BlocksOf(positions);
    }
    for (size_t w = 0; w < stage.windows_used.size(); ++w) {
      stage.windows_used[w] += RingBlocks(stage.pool.windows[w], positions);
    }
  }
}

void KvLedger::Release(int64_t positions) {
  MILLRACE_CHECK(sequences_ > 0);
  --sequences_;
  int64_t least = 0;
  for (Stage& stage : stages_) {
    if (stage.pool.full_blocks > 0) {
      stage.full_used -= BlocksOf(positions);
      least = std::min(least, stage.full_used);
    }
    for (size_t w = 0; w < stage.windows_used.size(); ++w) {
      stage.windows_used[w] -= RingBlocks(stage.pool.windows[w], positions);
      least = std::min(least, stage.windows_used[w]);
    }
  }
  MILLRACE_CHECK(least >= 0);  // nothing was given back twice
}

void KvLedger::Reset() {
  sequences_ = 0;
  for (Stage& stage : stages_) {
    stage.full_used = 0;
    std::fill(stage.windows_used.begin(), stage.windows_used.end(), 0);
  }
}

int64_t KvLedger::BlocksUsed(int64_t stage) const {
  const Stage& where = stages_[static_cast<size_t>(stage)];
  int64_t blocks = where.full_used;
  for (const int64_t used : where.windows_used) {
    blocks += used;
  }
  return blocks;
}

int64_t KvLedger::BlocksTotal(int64_t stage) const {
  const Stage& where = stages_[static_cast<size_t>(stage)];
  int64_t blocks = where.pool.full_blocks;
  for (const WindowPool& window : where.pool.windows) {
    blocks += window.pool_blocks;
  }
  return blocks;
}

}  // namespace millrace::coordinator
