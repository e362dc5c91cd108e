#include "coordinator/core/scheduler.h"

#include <algorithm>
#include <set>

#include "gtest/gtest.h"
#include "tests/unit/coordinator/core/core_rig.h"

namespace millrace::coordinator {
namespace {

using transport::Frame;
using transport::Row;

std::set<uint32_t> SlotsOf(const Frame& frame) {
  std::set<uint32_t> slots;
  for (const Row& row : frame.rows) {
    slots.insert(row.slot);
  }
  return slots;
}

// Pieces of one prompt are under way in all micro-batches at once, in order;
// a scheduler that waited for each piece would leave stages idle.
TEST(Scheduler, OnePromptFillsThePipeline) {
  CoreRig rig(CoreRig::Config(3));
  const GenerateRequest request = CoreRig::Request(1000, 4);
  const RequestId id = rig.Submit(request);
  EXPECT_EQ(rig.Send(), 4);
  uint32_t position = 0;
  for (const Frame& frame : rig.under_way) {
    for (const Row& row : frame.rows) {
      EXPECT_EQ(row.position, position++);
    }
  }
  EXPECT_GT(position, 64U);
  rig.Run();
  rig.ExpectAnswer(id, request);
}

// A short prompt is cut as well, but not thinner than reading the weights is
// worth.
TEST(Scheduler, PiecesFollowTheWork) {
  CoreRig rig(CoreRig::Config(3));
  rig.Submit(CoreRig::Request(64, 1));
  EXPECT_EQ(rig.Send(), 3);
  EXPECT_EQ(rig.under_way.front().rows.size(), 23U);
  CoreRig lone(CoreRig::Config(1));
  lone.Submit(CoreRig::Request(64, 1));
  EXPECT_EQ(lone.Send(), 1);
  EXPECT_EQ(lone.under_way.front().rows.size(), 64U);
}

// Sixteen short prompts at once do not land in one micro-batch.
TEST(Scheduler, BurstIsSpread) {
  CoreRig rig(CoreRig::Config(3));
  for (int32_t i = 0; i < 16; ++i) {
    rig.Submit(CoreRig::Request(3, 20, i));
  }
  EXPECT_EQ(rig.Send(), 4);
  for (const Frame& frame : rig.under_way) {
    EXPECT_EQ(SlotsOf(frame).size(), 4U);
  }
}

// Micro-batches that lose their sequences get those of others: rows differ by
// at most one after each has been around once.
TEST(Scheduler, RebalancesWhenSomeDrain) {
  CoreRig rig(CoreRig::Config(3));
  std::vector<RequestId> ids;
  for (int32_t i = 0; i < 16; ++i) {
    ids.push_back(rig.Submit(CoreRig::Request(3, 100, i)));
  }
  rig.Send();
  // Ends the sequences of two micro-batches.
  for (size_t i = 0; i < 8; ++i) {
    rig.core.Cancel(rig.now, ids[i]);
  }
  for (int i = 0; i < 8; ++i) {
    rig.Return();
    rig.Send();
  }
  EXPECT_EQ(rig.under_way.size(), 4U);
  for (const Frame& frame : rig.under_way) {
    EXPECT_EQ(frame.rows.size(), 2U);
  }
  rig.Run();
  rig.ExpectAtRest();
}

// A long prompt does not keep short ones waiting: their rows are in the next
// frame that leaves.
TEST(Scheduler, ShortPromptIsNotStarved) {
  CoreConfig config = CoreRig::Config(1);
  CoreRig rig(config);
  const GenerateRequest longer = CoreRig::Request(1000, 1);
  const RequestId long_id = rig.Submit(longer);
  rig.Send();
  const RequestId short_id = rig.Submit(CoreRig::Request(10, 2, 50));
  rig.Return();
  rig.Send();
  EXPECT_EQ(SlotsOf(rig.under_way.front()).size(), 2U);
  rig.Return();
  EXPECT_EQ(rig.heard[short_id].tokens.size(), 1U);
  EXPECT_FALSE(rig.heard[long_id].finish.has_value());
  rig.Run();
  rig.ExpectAnswer(long_id, longer);
}

// Prompts take turns also where a frame holds less than one turn: a second one
// does not wait for the first to be read.
TEST(Scheduler, PromptsTakeTurns) {
  CoreConfig config = CoreRig::Config(1);
  config.chunk = 16;
  CoreRig rig(config);
  rig.Submit(CoreRig::Request(1000, 1));
  rig.Submit(CoreRig::Request(1000, 1));
  for (int i = 0; i < 4; ++i) {
    rig.Send();
    const std::set<uint32_t> slots = SlotsOf(rig.under_way.front());
    EXPECT_EQ(slots.size(), 1U);
    EXPECT_EQ(*slots.begin(), static_cast<uint32_t>(i % 2));
    rig.Return();
  }
}

// Decoding goes on beside prefill, and prefill beside more decoding than a
// frame has rows.
TEST(Scheduler, DecodeAndPrefillShareAFrame) {
  CoreConfig config = CoreRig::Config(1);
  config.chunk = 8;
  config.rows_max = 16;
  CoreRig rig(config);
  std::vector<GenerateRequest> requests;
  for (int32_t i = 0; i < 30; ++i) {
    requests.push_back(CoreRig::Request(1, 30, i));
    rig.Submit(requests.back());
  }
  for (int i = 0; i < 10; ++i) {
    rig.Send();
    rig.Return();
  }
  requests.push_back(CoreRig::Request(40, 2, 7));
  const RequestId late = rig.Submit(requests.back());
  int passes = 0;
  while (rig.heard[late].tokens.empty() && passes < 200) {
    rig.Send();
    const Frame& frame = rig.under_way.front();
    EXPECT_LE(frame.rows.size(), 16U);
    EXPECT_GE(std::count_if(frame.rows.begin(), frame.rows.end(),
                            [](const Row& row) {
                              return (row.flags & transport::kRowDecode) != 0;
                            }),
              8);
    rig.Return();
    ++passes;
  }
  EXPECT_LE(passes, 20);
  rig.Run();
  for (size_t i = 0; i < requests.size(); ++i) {
    rig.ExpectAnswer(static_cast<RequestId>(i + 1), requests[i]);
  }
  rig.ExpectAtRest();
}

// Operations of a frame stay within their limit, and all get there.
TEST(Scheduler, OperationsAreBounded) {
  CoreConfig config = CoreRig::Config(2);
  config.ops_max = 3;
  CoreRig rig(config);
  for (int32_t i = 0; i < 20; ++i) {
    rig.Submit(CoreRig::Request(2, 1, i));
  }
  rig.Run();
  EXPECT_EQ(rig.core.counters().finished, 20);
  rig.ExpectAtRest();
}

// The mean fill counts only the time while requests run.
TEST(PipelineMeter, FillIsAMeanOverRunningTime) {
  PipelineMeter meter;
  meter.Advance(absl::Seconds(10), 0, false);
  meter.Advance(absl::Seconds(12), 3, true);
  meter.Advance(absl::Seconds(14), 1, true);
  meter.Advance(absl::Seconds(1000), 0, false);
  EXPECT_DOUBLE_EQ(meter.MeanInFlight(), 2.0);
  for (int i = 1; i <= 1001; ++i) {
    meter.RecordCycle(absl::Milliseconds(i));
  }
  EXPECT_EQ(meter.CycleP50(), absl::Milliseconds(874));
}

}  // namespace
}  // namespace millrace::coordinator
