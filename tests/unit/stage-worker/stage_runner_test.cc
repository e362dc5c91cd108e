#include "stage-worker/runtime/stage_runner.h"

#include <sys/resource.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/mutex.h"
#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::worker {
namespace {

using ::millrace::testing::TempDir;
using ::millrace::testing::TinyModel;

constexpr int64_t kLayers = 6;
constexpr uint32_t kPrompt = 20;

// Both links of a stage, held by the test; outlives the stage.
class Wire {
 public:
  void Push(transport::Frame frame) {
    MutexLock lock(mutex_);
    frames_.push_back(std::move(frame));
    changed_.NotifyAll();
  }
  void Close(const absl::Status& reason) {
    MutexLock lock(mutex_);
    end_ = end_.ok() ? reason : end_;
    changed_.NotifyAll();
  }
  absl::Status Next(transport::Frame& frame) {
    MutexLock lock(mutex_);
    while (frames_.empty() && end_.ok()) {
      changed_.Wait(mutex_);
    }
    if (!end_.ok()) {
      return end_;
    }
    frame = std::move(frames_.front());
    frames_.pop_front();
    return absl::OkStatus();
  }
  void Send(const transport::Frame& frame) {
    MutexLock lock(mutex_);
    sent_.push_back(frame);
    changed_.NotifyAll();
  }
  void AwaitClosed() {
    MutexLock lock(mutex_);
    while (end_.ok()) {
      changed_.Wait(mutex_);
    }
  }
  std::vector<transport::Frame> AwaitSent(size_t num) {
    MutexLock lock(mutex_);
    while (sent_.size() < num) {
      changed_.Wait(mutex_);
    }
    return sent_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<transport::Frame> frames_ ABSL_GUARDED_BY(mutex_);
  std::vector<transport::Frame> sent_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

class WireReceiver final : public transport::FrameReceiver {
 public:
  explicit WireReceiver(Wire& wire) : wire_(wire) {}
  absl::Status Next(absl::Duration /*timeout*/,
                    transport::Frame& frame) override {
    return wire_.Next(frame);
  }
  void Close(absl::Status reason) override { wire_.Close(reason); }
  [[nodiscard]] const transport::LinkCounters& counters() const override {
    return counters_;
  }

 private:
  Wire& wire_;
  transport::LinkCounters counters_;
};

class WireSender final : public transport::FrameSender {
 public:
  explicit WireSender(Wire& wire) : wire_(wire) {}
  absl::Status Send(const transport::Frame& frame) override {
    wire_.Send(frame);
    return absl::OkStatus();
  }
  void Close(absl::Status reason) override { wire_.Close(reason); }
  [[nodiscard]] const transport::LinkCounters& counters() const override {
    return counters_;
  }

 private:
  Wire& wire_;
  transport::LinkCounters counters_;
};

// Notes the layers that are begun. While it has a wire it holds the pass up in
// front of layer 1 until the wire is closed.
class HoldingTap final : public StageTap {
 public:
  void HoldUntilClosed(Wire* wire) {
    MutexLock lock(mutex_);
    wire_ = wire;
    layers_.clear();
  }
  void AwaitHeld() {
    MutexLock lock(mutex_);
    while (layers_.size() < 2) {
      changed_.Wait(mutex_);
    }
  }
  std::vector<int64_t> layers() {
    MutexLock lock(mutex_);
    return layers_;
  }
  void OnHidden(int64_t layer, const transport::Frame& /*frame*/,
                const float* /*hidden*/, int64_t /*num_rows*/,
                int64_t /*hidden_size*/) override {
    Wire* wire = nullptr;
    {
      MutexLock lock(mutex_);
      layers_.push_back(layer);
      wire = layer == 1 ? wire_ : nullptr;
      changed_.NotifyAll();
    }
    if (wire != nullptr) {
      wire->AwaitClosed();
    }
  }
  void OnLogits(const transport::Row& /*row*/, const float* /*logits*/,
                int64_t /*vocab_size*/) override {}

 private:
  Mutex mutex_;
  CondVar changed_;
  Wire* wire_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<int64_t> layers_ ABSL_GUARDED_BY(mutex_);
};

// Opens a sequence, reads its prompt and wants a token.
transport::Frame Prefill(uint64_t epoch) {
  transport::Frame frame;
  frame.epoch = epoch;
  transport::OpenSequence open;
  open.prompt_tokens = kPrompt;
  open.tokens_max = 2 * kPrompt;
  frame.ops.emplace_back(open);
  for (uint32_t position = 0; position < kPrompt; ++position) {
    frame.rows.push_back({.position = position,
                          .token = static_cast<int32_t>(3 + position * 7)});
  }
  frame.rows.back().flags = transport::kRowWantsToken | transport::kRowWantsCrc;
  return frame;
}

class StageRunnerTest : public ::testing::Test {
 protected:
  StageRunnerTest() {
    TinyModel model;
    model.num_layers = kLayers;
    model.tokenizer = false;
    ::millrace::testing::WriteTinyFolder(model, folder_.path());
    checkpoint_ = model::Checkpoint::Open(folder_.path()).value();
  }

  absl::StatusOr<std::unique_ptr<StageRunner>> Create(int num_threads) {
    StageRunner::Options options;
    options.kernels = &kernels_;
    options.tap = &tap_;
    options.config.last_layer = kLayers - 1;
    options.config.holds_embedding = true;
    options.config.holds_head = true;
    options.config.context = 2 * kPrompt;
    options.config.rows_max = kPrompt;
    options.config.prefill_chunk = kPrompt;
    options.config.num_threads = num_threads;
    return StageRunner::Create(*checkpoint_, options);
  }

  void Start(StageRunner& runner, uint64_t epoch, Wire& wire) {
    runner.Start(epoch, std::make_unique<WireReceiver>(wire),
                 std::make_unique<WireSender>(wire),
                 [this](const absl::Status& status) {
                   MutexLock lock(mutex_);
                   ended_ = status;
                   changed_.NotifyAll();
                 });
  }

  absl::Status AwaitEnded() {
    MutexLock lock(mutex_);
    while (ended_.ok()) {
      changed_.Wait(mutex_);
    }
    return ended_;
  }

  const kernels::KernelTable kernels_ =
      kernels::BuildKernelTable(kernels::BestIsa());
  TempDir folder_;
  std::unique_ptr<model::Checkpoint> checkpoint_;
  HoldingTap tap_;
  Mutex mutex_;
  CondVar changed_;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
};

// A stage that is stopped within a pass begins no further layer and sends
// nothing. Started again, it gives what one gives that never was.
TEST_F(StageRunnerTest, StopEndsThePassUnderWay) {
  Wire first;
  Wire again;
  Wire fresh;
  const auto runner = Create(2).value();
  tap_.HoldUntilClosed(&first);
  Start(*runner, 1, first);
  first.Push(Prefill(1));
  tap_.AwaitHeld();
  runner->Stop();
  EXPECT_EQ(tap_.layers(), (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(absl::IsCancelled(AwaitEnded())) << AwaitEnded();
  EXPECT_TRUE(first.AwaitSent(0).empty());

  tap_.HoldUntilClosed(nullptr);
  Start(*runner, 2, again);
  again.Push(Prefill(2));
  const auto fresh_runner = Create(2).value();
  Start(*fresh_runner, 2, fresh);
  fresh.Push(Prefill(2));
  const transport::Result got = again.AwaitSent(1)[0].results[0];
  const transport::Result want = fresh.AwaitSent(1)[0].results[0];
  EXPECT_EQ(got.token, want.token);
  EXPECT_EQ(got.logits_crc, want.logits_crc);
}

// What a stage holds is counted while its links live: afterwards its sequences
// are gone, also before the next frame comes.
TEST_F(StageRunnerTest, CountersForgetTheSequencesOfALostLink) {
  Wire wire;
  const auto runner = Create(1).value();
  Start(*runner, 1, wire);
  wire.Push(Prefill(1));
  wire.AwaitSent(1);
  EXPECT_EQ(runner->Counters().sequences_open, 1);
  EXPECT_GT(runner->Counters().kv_blocks_used, 0);
  wire.Close(absl::UnavailableError("the peer has gone"));
  EXPECT_TRUE(absl::IsUnavailable(AwaitEnded()));
  EXPECT_EQ(runner->Counters().sequences_open, 0);
  EXPECT_EQ(runner->Counters().kv_blocks_used, 0);
}

// 0 where a thousand threads are refused by name, with their number, since
// their stacks exceed the address space.
[[noreturn]] void CreateInLittleAddressSpace(
    const std::function<absl::Status()>& create) {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = static_cast<rlim_t>(pages) * 4096 + (rlim_t{1} << 30);
  const rlimit space = {limit, limit};
  if (setrlimit(RLIMIT_AS, &space) != 0) {
    std::exit(2);
  }
  const absl::Status status = create();
  std::exit(absl::IsResourceExhausted(status) &&
                    absl::StartsWith(status.message(), "--threads: 1000 ")
                ? 0
                : 1);
}

TEST_F(StageRunnerTest, RefusesThreadsThatCannotBeHad) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes more address space than there is memory";
#endif
  EXPECT_EXIT(
      CreateInLittleAddressSpace([this] { return Create(1000).status(); }),
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace millrace::worker
