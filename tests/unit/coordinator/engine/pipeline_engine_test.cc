#include "coordinator/engine/pipeline_engine.h"

#include <atomic>

#include "gtest/gtest.h"
#include "tests/simulation/fake_model.h"
#include "tests/unit/coordinator/engine/fake_pipeline.h"
#include "tests/unit/coordinator/engine/recording_observer.h"

namespace millrace::coordinator {
namespace {

CoreConfig Config(int64_t num_stages) {
  CoreConfig config;
  for (int64_t i = 0; i < num_stages; ++i) {
    config.stages.push_back(StagePool{.name = "w" + std::to_string(i),
                                      .full_blocks = 64,
                                      .windows = {},
                                      .slots = 32});
  }
  config.context = 512;
  config.vocab_size = kFakeVocabSize;
  config.chunk = 32;
  return config;
}

GenerateRequest Request(int64_t num_prompt, int64_t tokens_max,
                        int32_t first = 1) {
  GenerateRequest request;
  for (int64_t i = 0; i < num_prompt; ++i) {
    request.prompt.push_back(static_cast<int32_t>((first + i) % 900));
  }
  request.tokens_max = tokens_max;
  return request;
}

std::unique_ptr<PipelineEngine> MakeEngine(PipelineEngine::Options options) {
  absl::StatusOr<std::unique_ptr<PipelineEngine>> engine =
      PipelineEngine::Create(std::move(options));
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

std::unique_ptr<PipelineEngine> MakeEngine(const CoreConfig& config) {
  PipelineEngine::Options options;
  options.core = config;
  return MakeEngine(std::move(options));
}

struct Asked {
  RequestId id = 0;
  GenerateRequest request;
  std::shared_ptr<RecordingObserver> observer;
};

Asked Ask(PipelineEngine& engine, GenerateRequest request,
          std::function<void()> on_token = nullptr) {
  Asked asked{.id = 0,
              .request = std::move(request),
              .observer = std::make_shared<RecordingObserver>()};
  asked.observer->on_token = std::move(on_token);
  const absl::StatusOr<RequestId> id =
      engine.Submit(asked.request, asked.observer);
  EXPECT_TRUE(id.ok()) << id.status();
  asked.id = id.ok() ? *id : 0;
  return asked;
}

void ExpectAnswer(const Asked& asked) {
  asked.observer->Await();
  const FakeAnswer oracle = FakeOracle(asked.request);
  ASSERT_TRUE(asked.observer->finish.has_value()) << *asked.observer->error;
  EXPECT_EQ(*asked.observer->finish, oracle.reason);
  EXPECT_EQ(asked.observer->starts, 1);
  ASSERT_EQ(asked.observer->tokens.size(), oracle.tokens.size());
  for (size_t i = 0; i < oracle.tokens.size(); ++i) {
    EXPECT_EQ(asked.observer->tokens[i].token, oracle.tokens[i].token);
  }
  EXPECT_EQ(asked.observer->scores.size(), oracle.scores.size());
}

// Sixteen at once over real links equal the oracle; several micro-batches
// circulate meanwhile.
TEST(PipelineEngine, SixteenAtOnce) {
  const CoreConfig config = Config(3);
  FakePipeline pipeline(config, 1);
  const auto engine = MakeEngine(config);
  ASSERT_TRUE(pipeline.ConnectTo(*engine).ok());
  std::vector<Asked> all;
  for (int32_t i = 0; i < 16; ++i) {
    GenerateRequest request = Request(1 + 20 * i, 30, i);
    request.want_prompt_scores = i % 5 == 0;
    all.push_back(Ask(*engine, std::move(request)));
  }
  for (const Asked& asked : all) {
    ExpectAnswer(asked);
  }
  const EngineSnapshot snapshot = engine->Snapshot();
  EXPECT_TRUE(snapshot.ready);
  EXPECT_EQ(snapshot.requests_finished, 16);
  EXPECT_EQ(snapshot.generated_tokens, 16 * 30);
  EXPECT_EQ(snapshot.microbatch_slots, 4);
  EXPECT_GT(snapshot.pipeline_fill, 0);
  EXPECT_LE(snapshot.pipeline_fill, 1);
  EXPECT_GT(snapshot.cycle_p50, absl::ZeroDuration());
  EXPECT_TRUE(pipeline.fault().ok()) << pipeline.fault();
}

// All N micro-batches are under way before the first comes back.
TEST(PipelineEngine, FillsThePipeline) {
  const CoreConfig config = Config(3);
  FakePipeline pipeline(config, 1);
  pipeline.Hold();
  const auto engine = MakeEngine(config);
  ASSERT_TRUE(pipeline.ConnectTo(*engine).ok());
  std::vector<Asked> all;
  for (int32_t i = 0; i < 4; ++i) {
    all.push_back(Ask(*engine, Request(40, 4, i)));
  }
  while (engine->Snapshot().microbatches_in_flight < 4) {
    std::this_thread::yield();
  }
  pipeline.Release();
  for (const Asked& asked : all) {
    ExpectAnswer(asked);
  }
}

// A cancelled request ends at once, though its rows are stuck in a stage, and
// its memory comes back: it was all there was, and the next one runs.
TEST(PipelineEngine, CancelFreesMemory) {
  CoreConfig config = Config(2);
  config.stages[1].full_blocks = 2;
  FakePipeline pipeline(config, 1);
  pipeline.Hold();
  const auto engine = MakeEngine(config);
  ASSERT_TRUE(pipeline.ConnectTo(*engine).ok());
  const Asked first = Ask(*engine, Request(60, 60));
  const Asked next = Ask(*engine, Request(60, 60, 9));
  pipeline.AwaitFrames(1);
  engine->Cancel(first.id);
  first.observer->Await();
  EXPECT_EQ(first.observer->error->code(), absl::StatusCode::kCancelled);
  engine->Cancel(first.id);
  pipeline.Release();
  ExpectAnswer(next);
  EXPECT_EQ(engine->Snapshot().requests_cancelled, 1);
  EXPECT_TRUE(pipeline.fault().ok()) << pipeline.fault();
}

// Cancel may be called by the request's own callback: no lock is held there.
TEST(PipelineEngine, CancelFromCallback) {
  const CoreConfig config = Config(1);
  FakePipeline pipeline(config, 1);
  const auto engine = MakeEngine(config);
  ASSERT_TRUE(pipeline.ConnectTo(*engine).ok());
  std::atomic<RequestId> id{0};
  pipeline.Hold();
  const Asked asked =
      Ask(*engine, Request(5, 400), [&] { engine->Cancel(id.load()); });
  id = asked.id;
  pipeline.Release();
  asked.observer->Await();
  ASSERT_TRUE(asked.observer->error.has_value());
  EXPECT_EQ(asked.observer->error->code(), absl::StatusCode::kCancelled);
}

// A lost stage ends what runs with the reason given, and after Connect with a
// new epoch the pipeline serves again; an old epoch is refused.
TEST(PipelineEngine, DisconnectAndBack) {
  CoreConfig config = Config(2);
  config.stages[0].slots = 1;
  FakePipeline before(config, 1);
  before.Hold();
  const auto engine = MakeEngine(config);
  EXPECT_FALSE(engine->Snapshot().ready);
  EXPECT_EQ(engine->Submit(Request(1, 1), nullptr).status().code(),
            absl::StatusCode::kUnavailable);
  ASSERT_TRUE(before.ConnectTo(*engine).ok());
  const Asked runs = Ask(*engine, Request(60, 60));
  const Asked waits = Ask(*engine, Request(60, 60));
  before.AwaitFrames(1);
  engine->Disconnect(absl::UnavailableError("stage 'w1' was lost"));
  runs.observer->Await();
  ASSERT_TRUE(runs.observer->error.has_value());
  EXPECT_EQ(runs.observer->error->code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(runs.observer->error->message().find("'w1'"),
            absl::string_view::npos);
  EXPECT_EQ(engine->Snapshot().not_ready_reason, "stage 'w1' was lost");
  FakePipeline stale(config, 1);
  EXPECT_EQ(stale.ConnectTo(*engine).code(), absl::StatusCode::kAborted);
  FakePipeline after(config, 2);
  ASSERT_TRUE(after.ConnectTo(*engine).ok());
  ExpectAnswer(waits);
  ExpectAnswer(Ask(*engine, Request(7, 7)));
  EXPECT_EQ(engine->Snapshot().epoch, 2U);
  EXPECT_TRUE(after.fault().ok()) << after.fault();
}

// A link that breaks by itself is noticed while nothing is sent on it too; the
// reason comes from explain_loss and the owner is told.
TEST(PipelineEngine, BrokenLinkIsExplained) {
  const CoreConfig config = Config(3);
  FakePipeline pipeline(config, 7);
  std::atomic<uint64_t> lost{0};
  PipelineEngine::Options options;
  options.core = config;
  options.explain_loss = [](const absl::Status&) {
    return absl::UnavailableError("stage 'w1' (node b) was lost");
  };
  options.on_link_lost = [&](uint64_t epoch, const absl::Status&) {
    lost = epoch;
    lost.notify_all();
  };
  const auto engine = MakeEngine(std::move(options));
  ASSERT_TRUE(pipeline.ConnectTo(*engine).ok());
  pipeline.Hold();
  const Asked asked = Ask(*engine, Request(60, 60));
  pipeline.AwaitFrames(1);
  pipeline.KillStage(1, absl::UnavailableError("connection reset"));
  asked.observer->Await();
  ASSERT_TRUE(asked.observer->error.has_value());
  EXPECT_NE(asked.observer->error->message().find("(node b)"),
            absl::string_view::npos);
  lost.wait(0);
  EXPECT_EQ(lost, 7U);
  pipeline.Release();
  EXPECT_FALSE(engine->Snapshot().ready);
}

// Drain refuses new requests, lets running ones finish and cancels the rest at
// its deadline, none of them twice.
TEST(PipelineEngine, Drain) {
  const CoreConfig config = Config(2);
  FakePipeline pipeline(config, 1);
  const auto engine = MakeEngine(config);
  ASSERT_TRUE(pipeline.ConnectTo(*engine).ok());
  const Asked finishes = Ask(*engine, Request(60, 60));
  engine->Drain(absl::InfiniteDuration());
  EXPECT_TRUE(finishes.observer->ended());
  ExpectAnswer(finishes);
  EXPECT_EQ(engine->Submit(Request(1, 1), nullptr).status().code(),
            absl::StatusCode::kUnavailable);

  FakePipeline stuck(config, 1);
  stuck.Hold();
  const auto other = MakeEngine(config);
  ASSERT_TRUE(stuck.ConnectTo(*other).ok());
  const Asked cancelled = Ask(*other, Request(60, 60));
  stuck.AwaitFrames(1);
  other->Drain(absl::ZeroDuration());
  ASSERT_TRUE(cancelled.observer->ended());
  EXPECT_EQ(cancelled.observer->error->code(), absl::StatusCode::kCancelled);
}

// An engine that goes away ends every request it had accepted.
TEST(PipelineEngine, DestructionEndsRequests) {
  const CoreConfig config = Config(2);
  FakePipeline pipeline(config, 1);
  pipeline.Hold();
  std::vector<Asked> all;
  {
    const auto engine = MakeEngine(config);
    ASSERT_TRUE(pipeline.ConnectTo(*engine).ok());
    for (int32_t i = 0; i < 60; ++i) {
      all.push_back(Ask(*engine, Request(60, 60, i)));
    }
  }
  for (const Asked& asked : all) {
    ASSERT_TRUE(asked.observer->ended());
    EXPECT_EQ(asked.observer->error->code(), absl::StatusCode::kCancelled);
  }
}

// Who waits too long in the queue is told, though no other event comes.
TEST(PipelineEngine, QueueAge) {
  CoreConfig config = Config(1);
  config.stages[0].slots = 1;
  config.queue.age_max = absl::Milliseconds(20);
  FakePipeline pipeline(config, 1);
  pipeline.Hold();
  const auto engine = MakeEngine(config);
  ASSERT_TRUE(pipeline.ConnectTo(*engine).ok());
  const Asked runs = Ask(*engine, Request(5, 5));
  const Asked waits = Ask(*engine, Request(5, 5));
  waits.observer->Await();
  ASSERT_TRUE(waits.observer->error.has_value());
  EXPECT_EQ(waits.observer->error->code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_GE(RetryAfterOf(*waits.observer->error), 1);
  pipeline.Release();
  ExpectAnswer(runs);
}

// Counts how often it is asked.
class CountingClock final : public Clock {
 public:
  absl::Time Now() const override { return clock_.Now(); }
  absl::Duration Monotonic() const override {
    ++asked;
    return clock_.Monotonic();
  }
  mutable std::atomic<int64_t> asked{0};

 private:
  const SystemClock clock_;
};

// An engine with nothing to do does nothing: a loop that polled would look at
// its clock.
TEST(PipelineEngine, SleepsWhenIdle) {
  const CoreConfig config = Config(2);
  FakePipeline pipeline(config, 1);
  const CountingClock clock;
  PipelineEngine::Options options;
  options.core = config;
  options.clock = &clock;
  const auto engine = MakeEngine(std::move(options));
  ASSERT_TRUE(pipeline.ConnectTo(*engine).ok());
  ExpectAnswer(Ask(*engine, Request(60, 60)));
  while (engine->Snapshot().stages[0].kv_blocks_used > 0) {
    std::this_thread::yield();
  }
  // The window that is observed, and one before it for what still settles.
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  never.WaitFor(mutex, absl::Milliseconds(50));
  const int64_t before = clock.asked;
  never.WaitFor(mutex, absl::Milliseconds(200));
  EXPECT_LE(clock.asked - before, 1);
}

// What the stages say of themselves goes into the snapshot as it is.
TEST(PipelineEngine, SnapshotOfStages) {
  PipelineEngine::Options options;
  options.core = Config(2);
  options.stages = [] {
    StageSnapshot stage;
    stage.name = "from outside";
    return std::vector<StageSnapshot>{stage};
  };
  const auto engine = MakeEngine(std::move(options));
  const EngineSnapshot snapshot = engine->Snapshot();
  ASSERT_EQ(snapshot.stages.size(), 1U);
  EXPECT_EQ(snapshot.stages[0].name, "from outside");
  EXPECT_EQ(snapshot.context, 512);
  EXPECT_FALSE(snapshot.ready);
}

// The time to try again survives the status; others have a default.
TEST(QueueFull, CarriesRetryAfter) {
  EXPECT_EQ(RetryAfterOf(QueueFull("full", 17)), 17);
  EXPECT_EQ(RetryAfterOf(QueueFull("full", -3)), 1);
  EXPECT_GE(RetryAfterOf(absl::ResourceExhaustedError("other")), 1);
}

}  // namespace
}  // namespace millrace::coordinator
