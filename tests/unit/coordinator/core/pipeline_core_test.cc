#include "coordinator/core/pipeline_core.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/unit/coordinator/core/core_rig.h"

namespace millrace::coordinator {
namespace {

using transport::Frame;

// Answers equal the oracle's, alone and together, with every kind of wish; a
// row lost, repeated or given to another sequence changes a hash.
TEST(PipelineCore, AnswersEqualTheOracle) {
  for (const int64_t chunk : {1, 7, 64, 128}) {
    CoreConfig config = CoreRig::Config(3);
    config.chunk = chunk;
    CoreRig rig(config);
    std::vector<std::pair<RequestId, GenerateRequest>> asked;
    for (int32_t i = 0; i < 16; ++i) {
      GenerateRequest request = CoreRig::Request(1 + 11 * i, i, i);
      request.sampling.seed = static_cast<uint64_t>(i / 2);
      request.want_logprobs = i % 2 == 0;
      request.top_logprobs = i % 3;
      request.want_prompt_scores = i % 4 == 1;
      request.want_logits_crc = i % 4 >= 1;
      asked.emplace_back(rig.Submit(request), request);
    }
    rig.Run();
    for (const auto& [id, request] : asked) {
      rig.ExpectAnswer(id, request);
    }
    rig.ExpectAtRest();
    EXPECT_EQ(rig.core.counters().results_ignored, 0);
    EXPECT_EQ(rig.core.counters().finished, 16);
  }
}

// A stop token ends the answer, and is part of it.
TEST(PipelineCore, StopTokenIncluded) {
  CoreRig rig(CoreRig::Config(2));
  GenerateRequest request = CoreRig::Request(5, 40);
  const FakeAnswer free = FakeOracle(request);
  request.stop_tokens = {free.tokens[6].token};
  const RequestId id = rig.Submit(request);
  rig.Run();
  rig.ExpectAnswer(id, request);
  EXPECT_EQ(rig.heard[id].finish, FinishReason::kStop);
  rig.ExpectAtRest();
}

// Of a request without tokens only the prompt is read; it ends after that,
// also when it wants nothing back at all.
TEST(PipelineCore, NoTokenWanted) {
  CoreRig rig(CoreRig::Config(2));
  const RequestId silent = rig.Submit(CoreRig::Request(300, 0));
  GenerateRequest scored = CoreRig::Request(300, 0);
  scored.want_prompt_scores = true;
  scored.want_logits_crc = true;
  const RequestId scores = rig.Submit(scored);
  rig.Run();
  rig.ExpectAnswer(silent, CoreRig::Request(300, 0));
  rig.ExpectAnswer(scores, scored);
  EXPECT_EQ(rig.heard[scores].scores.size(), 300U);
  EXPECT_EQ(rig.heard[scores].scores.back().position, 300);
  EXPECT_EQ(rig.core.counters().prompt_tokens, 600);
  rig.ExpectAtRest();
}

// What can never fit is refused with the longest that would, and exactly that
// is accepted.
TEST(PipelineCore, RefusesWhatNeverFits) {
  CoreConfig config = CoreRig::Config(2);
  config.stages[1].full_blocks = 4;
  CoreRig rig(config);
  const absl::Status refused =
      rig.core.Submit(rig.now, CoreRig::Request(200, 57)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("256"), absl::string_view::npos) << refused;
  EXPECT_NE(refused.message().find("'w1'"), absl::string_view::npos);
  EXPECT_FALSE(rig.core.Submit(rig.now, CoreRig::Request(257, 0)).ok());
  EXPECT_FALSE(rig.core.Submit(rig.now, CoreRig::Request(5, INT64_MAX)).ok());
  EXPECT_FALSE(rig.core.Submit(rig.now, CoreRig::Request(5, -1)).ok());
  EXPECT_FALSE(rig.core.Submit(rig.now, CoreRig::Request(0, 5)).ok());
  GenerateRequest foreign = CoreRig::Request(5, 5);
  foreign.prompt[2] = kFakeVocabSize;
  EXPECT_FALSE(rig.core.Submit(rig.now, foreign).ok());
  const GenerateRequest longest = CoreRig::Request(200, 56);
  const RequestId id = rig.Submit(longest);
  rig.Run();
  rig.ExpectAnswer(id, longest);
  EXPECT_EQ(rig.core.counters().refused, 6);
  rig.ExpectAtRest();
}

// A full queue names the stage that binds and says when to come back; those
// that wait are served in order.
TEST(PipelineCore, QueueIsBounded) {
  CoreConfig config = CoreRig::Config(2);
  config.stages[1].full_blocks = 2;
  config.queue.requests_max = 2;
  CoreRig rig(config);
  const RequestId a = rig.Submit(CoreRig::Request(60, 60));
  const RequestId b = rig.Submit(CoreRig::Request(60, 60));
  const RequestId c = rig.Submit(CoreRig::Request(3, 3));
  const absl::Status full =
      rig.core.Submit(rig.now, CoreRig::Request(3, 3)).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(full.message().find("'w1'"), absl::string_view::npos) << full;
  EXPECT_GE(RetryAfterOf(full), 1);
  EXPECT_EQ(rig.core.num_waiting(), 2);
  rig.Run();
  rig.ExpectAnswer(a, CoreRig::Request(60, 60));
  rig.ExpectAnswer(b, CoreRig::Request(60, 60));
  rig.ExpectAnswer(c, CoreRig::Request(3, 3));
  rig.ExpectAtRest();
}

// The queue is bounded in tokens as well.
TEST(PipelineCore, QueueIsBoundedInTokens) {
  CoreConfig config = CoreRig::Config(1);
  config.stages[0].slots = 1;
  config.queue.tokens_max = 100;
  CoreRig rig(config);
  rig.Submit(CoreRig::Request(500, 60));
  rig.Submit(CoreRig::Request(50, 30));
  EXPECT_EQ(rig.core.Submit(rig.now, CoreRig::Request(11, 10)).status().code(),
            absl::StatusCode::kResourceExhausted);
  rig.Submit(CoreRig::Request(10, 10));
  rig.Run();
  rig.ExpectAtRest();
}

// Who waits longer than the limit is told so; no timer runs while none waits.
TEST(PipelineCore, QueueIsBoundedInAge) {
  CoreConfig config = CoreRig::Config(1);
  config.stages[0].slots = 1;
  config.queue.age_max = absl::Seconds(10);
  CoreRig rig(config);
  EXPECT_FALSE(rig.core.NextDeadline().has_value());
  const RequestId runs = rig.Submit(CoreRig::Request(5, 5));
  EXPECT_FALSE(rig.core.NextDeadline().has_value());
  const RequestId waits = rig.Submit(CoreRig::Request(5, 5));
  ASSERT_TRUE(rig.core.NextDeadline().has_value());
  rig.now = *rig.core.NextDeadline() - absl::Milliseconds(1);
  rig.core.TimePassed(rig.now);
  rig.Listen();
  EXPECT_FALSE(rig.heard[waits].error.has_value());
  rig.now += absl::Milliseconds(1);
  rig.core.TimePassed(rig.now);
  rig.Listen();
  ASSERT_TRUE(rig.heard[waits].error.has_value());
  EXPECT_EQ(rig.heard[waits].error->code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(rig.core.NextDeadline().has_value());
  rig.Run();
  rig.ExpectAnswer(runs, CoreRig::Request(5, 5));
}

// The reservation and the slot come back when the close has passed the last
// stage, not before: until then the next in line waits.
TEST(PipelineCore, ReservationComesBackWithTheClose) {
  CoreConfig config = CoreRig::Config(2);
  config.stages[0].slots = 1;
  CoreRig rig(config);
  const RequestId first = rig.Submit(CoreRig::Request(4, 1));
  const RequestId second = rig.Submit(CoreRig::Request(4, 1));
  EXPECT_EQ(rig.Send(), 1);
  rig.Return();
  ASSERT_TRUE(rig.heard[first].finish.has_value());
  EXPECT_EQ(rig.core.ledger().sequences(), 1);
  EXPECT_EQ(rig.heard[second].starts, 0);
  // A close-only frame, as nothing else leaves.
  EXPECT_EQ(rig.Send(), 1);
  EXPECT_TRUE(rig.under_way.front().rows.empty());
  EXPECT_EQ(rig.under_way.front().ops.size(), 1U);
  rig.Return();
  EXPECT_EQ(rig.heard[second].starts, 1);
  rig.Run();
  rig.ExpectAnswer(second, CoreRig::Request(4, 1));
  rig.ExpectAtRest();
}

// Cancel before anything left frees at once; while rows are under way the
// close follows them and what still comes back is ignored.
TEST(PipelineCore, Cancel) {
  CoreRig rig(CoreRig::Config(3));
  const RequestId early = rig.Submit(CoreRig::Request(10, 10));
  rig.core.Cancel(rig.now, early);
  EXPECT_EQ(rig.core.ledger().sequences(), 0);
  const RequestId late = rig.Submit(CoreRig::Request(10, 10));
  const RequestId other = rig.Submit(CoreRig::Request(20, 10));
  rig.Send();
  rig.core.Cancel(rig.now, late);
  rig.core.Cancel(rig.now, late);
  rig.core.Cancel(rig.now, 12345);
  rig.Run();
  EXPECT_EQ(rig.heard[early].error->code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(rig.heard[late].error->code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(rig.heard[late].tokens.empty());
  EXPECT_EQ(rig.core.counters().cancelled, 2);
  EXPECT_EQ(rig.core.counters().results_ignored, 1);
  rig.ExpectAnswer(other, CoreRig::Request(20, 10));
  rig.ExpectAtRest();
}

// Numbers out of range end the request with the position and the remedy, and
// nobody else's.
TEST(PipelineCore, NumbersOutOfRange) {
  CoreRig rig(CoreRig::Config(2));
  GenerateRequest poison = CoreRig::Request(40, 4);
  poison.prompt[33] = kFakePoison;
  GenerateRequest overflow = CoreRig::Request(40, 4);
  overflow.prompt[7] = kFakeOverflow;
  const RequestId a = rig.Submit(poison);
  const RequestId b = rig.Submit(overflow);
  const RequestId c = rig.Submit(CoreRig::Request(40, 4));
  rig.Run();
  EXPECT_EQ(rig.heard[a].error->code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(rig.heard[a].error->message().find("33"), absl::string_view::npos);
  EXPECT_EQ(rig.heard[b].error->code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(rig.heard[b].error->ToString().find("--kv bf16"),
            std::string::npos);
  rig.ExpectAnswer(c, CoreRig::Request(40, 4));
  rig.ExpectAtRest();
}

// A stage is lost: what runs ends with kUnavailable naming it, what waits is
// served by the next epoch, frames of the old one are ignored.
TEST(PipelineCore, StageLost) {
  CoreConfig config = CoreRig::Config(2);
  config.stages[0].slots = 1;
  CoreRig rig(config);
  const RequestId runs = rig.Submit(CoreRig::Request(200, 10));
  const RequestId waits = rig.Submit(CoreRig::Request(20, 10));
  rig.Send();
  Frame old = rig.under_way.front();
  rig.under_way.clear();
  rig.core.Disconnect(rig.now, absl::UnavailableError("stage 'w1' was lost"));
  rig.Listen();
  ASSERT_TRUE(rig.heard[runs].error.has_value());
  EXPECT_EQ(rig.heard[runs].error->code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(rig.heard[runs].error->message().find("'w1'"),
            absl::string_view::npos);
  EXPECT_EQ(rig.core.Submit(rig.now, CoreRig::Request(5, 5)).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(rig.Send(), 0);
  for (FakeStage& stage : rig.stages) {
    stage.Reset();
  }
  rig.core.Connect(rig.now, ++rig.epoch);
  rig.core.FrameReturned(rig.now, old);
  EXPECT_EQ(rig.core.counters().frames_ignored, 1);
  rig.Run();
  rig.ExpectAnswer(waits, CoreRig::Request(20, 10));
  rig.ExpectAtRest();
}

// A last stage that forgets a result, or invents one, hangs or corrupts
// nobody.
TEST(PipelineCore, HostileResults) {
  CoreRig rig(CoreRig::Config(1));
  const RequestId forgotten = rig.Submit(CoreRig::Request(8, 8));
  rig.Send();
  Frame back = rig.under_way.front();
  rig.under_way.clear();
  back.ops.clear();
  back.rows.clear();
  using Place = std::pair<uint32_t, uint32_t>;
  for (const Place& place : {Place(7, 3), Place(4000000000U, 3),
                             Place(0, 4000000000U), Place(0, 2)}) {
    transport::Result result;
    result.slot = place.first;
    result.position = place.second;
    result.token = 5;
    back.results.push_back(result);
  }
  rig.core.FrameReturned(rig.now, back);
  rig.core.FrameReturned(rig.now, back);
  rig.Listen();
  EXPECT_EQ(rig.heard[forgotten].error->code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(rig.heard[forgotten].tokens.empty());
  EXPECT_EQ(rig.core.counters().frames_ignored, 1);
}

// A result that comes twice is told once, be it a token or a score.
TEST(PipelineCore, RepeatedResults) {
  CoreRig rig(CoreRig::Config(1));
  GenerateRequest request = CoreRig::Request(8, 8);
  request.want_prompt_scores = true;
  request.want_logits_crc = true;
  const RequestId id = rig.Submit(request);
  rig.Send();
  Frame back = rig.under_way.front();
  rig.under_way.clear();
  ASSERT_TRUE(rig.stages[0].Process(back).ok());
  const std::vector<transport::Result> once = back.results;
  back.results.insert(back.results.end(), once.begin(), once.end());
  rig.core.FrameReturned(rig.now, back);
  EXPECT_EQ(rig.core.counters().results_ignored, 9);
  rig.Run();
  rig.ExpectAnswer(id, request);
}

// After StopIntake nothing new is accepted and what was accepted finishes,
// that in the queue too.
TEST(PipelineCore, DrainFinishesWhatWasAccepted) {
  CoreConfig config = CoreRig::Config(2);
  config.stages[0].slots = 1;
  CoreRig rig(config);
  const RequestId a = rig.Submit(CoreRig::Request(5, 5));
  const RequestId b = rig.Submit(CoreRig::Request(5, 5));
  rig.core.StopIntake();
  EXPECT_EQ(rig.core.Submit(rig.now, CoreRig::Request(5, 5)).status().code(),
            absl::StatusCode::kUnavailable);
  rig.Run();
  rig.ExpectAnswer(a, CoreRig::Request(5, 5));
  rig.ExpectAnswer(b, CoreRig::Request(5, 5));
  EngineSnapshot snapshot;
  rig.core.FillSnapshot(snapshot);
  EXPECT_FALSE(snapshot.ready);
  EXPECT_FALSE(snapshot.not_ready_reason.empty());
  EXPECT_EQ(snapshot.requests_finished, 2);
  EXPECT_EQ(snapshot.requests_refused, 1);
  EXPECT_EQ(snapshot.generated_tokens, 10);
  EXPECT_GT(snapshot.cycle_p50, absl::ZeroDuration());
}

}  // namespace
}  // namespace millrace::coordinator
