#include "coordinator/core/kv_ledger.h"

#include "gtest/gtest.h"

namespace millrace::coordinator {
namespace {

CoreConfig TwoStages() {
  CoreConfig config;
  config.context = 4096;
  config.vocab_size = 10;
  config.stages = {
      StagePool{.name = "rich", .full_blocks = 100, .windows = {}, .slots = 8},
      StagePool{.name = "poor", .full_blocks = 10, .windows = {}, .slots = 8}};
  return config;
}

// The stage with the fewest blocks binds, not the sum or the first: a ledger
// that looked at one pool would admit the eleventh block.
TEST(KvLedger, PoorestStageBinds) {
  KvLedger ledger(TwoStages());
  EXPECT_EQ(ledger.longest(), 640);
  EXPECT_EQ(ledger.longest_stage(), 1);
  ledger.Reserve(576);
  EXPECT_FALSE(ledger.BindingStage(64).has_value());
  ASSERT_TRUE(ledger.BindingStage(65).has_value());
  EXPECT_EQ(*ledger.BindingStage(65), 1);
  EXPECT_NE(ledger.Shortage(1, 65).find("'poor'"), std::string::npos);
  ledger.Release(576);
  EXPECT_EQ(ledger.BlocksUsed(0), 0);
  EXPECT_EQ(ledger.BlocksUsed(1), 0);
}

// A stage without attention layers has no KV term; were its pool of 0 taken
// for a limit, nothing would ever fit.
TEST(KvLedger, StageWithoutKvDoesNotBind) {
  CoreConfig config = TwoStages();
  config.stages[1].full_blocks = 0;
  KvLedger ledger(config);
  EXPECT_EQ(ledger.longest(), 4096);
  EXPECT_EQ(ledger.longest_stage(), -1);
  EXPECT_FALSE(ledger.BindingStage(4096).has_value());
}

// A window takes its ring and no more, however long the sequence, and less
// for a shorter one.
TEST(KvLedger, WindowIsAStep) {
  CoreConfig config = TwoStages();
  config.stages[1].full_blocks = 0;
  config.stages[1].windows = {WindowPool{.ring_blocks = 4, .pool_blocks = 9}};
  KvLedger ledger(config);
  EXPECT_EQ(ledger.longest(), 4096);
  ledger.Reserve(3000);
  EXPECT_EQ(ledger.BlocksUsed(1), 4);
  ledger.Reserve(1);
  EXPECT_EQ(ledger.BlocksUsed(1), 5);
  ledger.Reserve(256);
  EXPECT_EQ(ledger.BlocksUsed(1), 9);
  EXPECT_TRUE(ledger.BindingStage(1).has_value());
  ledger.Reset();
  EXPECT_EQ(ledger.sequences(), 0);
  EXPECT_EQ(ledger.BlocksUsed(1), 0);
}

// Slots bind where blocks are plenty.
TEST(KvLedger, SlotsBind) {
  CoreConfig config = TwoStages();
  config.stages[0].slots = 2;
  KvLedger ledger(config);
  EXPECT_EQ(ledger.slots(), 2);
  ledger.Reserve(1);
  ledger.Reserve(1);
  ASSERT_TRUE(ledger.BindingStage(1).has_value());
  EXPECT_NE(ledger.Shortage(0, 1).find("slots"), std::string::npos);
}

// Every field out of range is refused by its name.
TEST(CoreConfig, ValidateNamesTheField) {
  CoreConfig config = TwoStages();
  EXPECT_TRUE(config.Validate().ok());
  config.rows_max = config.chunk;
  EXPECT_NE(config.Validate().message().find("rows_max"),
            absl::string_view::npos);
  config = TwoStages();
  config.stages[0].slots = 0;
  EXPECT_NE(config.Validate().message().find("rich.slots"),
            absl::string_view::npos);
  config = TwoStages();
  config.stages.clear();
  EXPECT_FALSE(config.Validate().ok());
}

}  // namespace
}  // namespace millrace::coordinator
