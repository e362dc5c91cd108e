#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "coordinator/engine/pipeline_engine.h"
#include "tests/simulation/fake_stage.h"
#include "transport/inproc/inproc_channel.h"

namespace millrace::coordinator {

// Stages that check what they are sent, each on its own thread, joined into a
// ring by real links inside this process. Ends when a stage finds a fault, a
// link closes or it is destroyed.
class FakePipeline {
 public:
  FakePipeline(const CoreConfig& config, uint64_t epoch)
      : config_(config), epoch_(epoch) {
    const size_t num_stages = config_.stages.size();
    transport::LinkOptions link{.limits = config_.LimitsOfFrames(8),
                                .epoch = epoch,
                                .window = Window(),
                                .checksum = true};
    const transport::InProcOptions channel{
        .frame_bytes_max = link.limits.FrameBytesMax(), .window = link.window};
    std::unique_ptr<transport::FrameReceiver> upstream;
    for (size_t i = 0; i <= num_stages; ++i) {
      auto [from, to] = transport::MakeInProcPair(channel);
      auto sender = transport::MakeFrameSender(std::move(from), link);
      auto receiver = transport::MakeFrameReceiver(std::move(to), link);
      if (i == 0) {
        to_first = std::move(sender);
      } else {
        stages_.push_back(
            std::make_unique<Stage>(config_, static_cast<int64_t>(i) - 1));
        stages_.back()->upstream = std::move(upstream);
        stages_.back()->downstream = std::move(sender);
      }
      upstream = std::move(receiver);
    }
    from_last = std::move(upstream);
    for (const auto& stage : stages_) {
      stage->thread = std::thread([this, &stage = *stage] { Run(stage); });
    }
  }
  ~FakePipeline() {
    Release();
    for (const auto& stage : stages_) {
      Kill(*stage, absl::CancelledError("the test is over"));
    }
    for (const auto& stage : stages_) {
      stage->thread.join();
    }
  }
  FakePipeline(const FakePipeline&) = delete;
  FakePipeline& operator=(const FakePipeline&) = delete;

  absl::Status ConnectTo(PipelineEngine& engine) {
    return engine.Connect(epoch_, std::move(to_first), std::move(from_last));
  }

  // Frames that have come stay at the first stage until Release.
  void Hold() {
    MutexLock lock(mutex_);
    held_ = true;
  }
  void Release() {
    {
      MutexLock lock(mutex_);
      held_ = false;
    }
    changed_.NotifyAll();
  }
  // Until `frames` in all have come to the first stage.
  void AwaitFrames(int64_t frames) {
    MutexLock lock(mutex_);
    while (frames_ < frames) {
      changed_.Wait(mutex_);
    }
  }
  // One stage goes: both its links close.
  void KillStage(size_t index, const absl::Status& reason) {
    Kill(*stages_[index], reason);
  }
  // What a stage found wrong, OK if nothing.
  absl::Status fault() {
    MutexLock lock(mutex_);
    return fault_;
  }

  std::unique_ptr<transport::FrameSender> to_first;
  std::unique_ptr<transport::FrameReceiver> from_last;

 private:
  struct Stage {
    Stage(const CoreConfig& config, int64_t index)
        : index(index), stage(config, index) {}
    const int64_t index;
    FakeStage stage;
    std::unique_ptr<transport::FrameReceiver> upstream;
    std::unique_ptr<transport::FrameSender> downstream;
    std::thread thread;
  };

  uint32_t Window() const {
    return static_cast<uint32_t>(config_.WithDefaults().microbatches);
  }

  static void Kill(Stage& stage, const absl::Status& reason) {
    stage.upstream->Close(reason);
    stage.downstream->Close(reason);
  }

  void Run(Stage& stage) {
    transport::Frame frame;
    absl::Status status;
    while (status.ok()) {
      status = stage.upstream->Next(absl::Minutes(10), frame);
      if (!status.ok()) {
        break;
      }
      if (stage.index == 0) {
        Gate();
      }
      status = stage.stage.Process(frame);
      if (!status.ok()) {
        MutexLock lock(mutex_);
        fault_ = status;
      } else {
        status = stage.downstream->Send(frame);
      }
    }
    Kill(stage, status);
  }

  void Gate() {
    MutexLock lock(mutex_);
    ++frames_;
    changed_.NotifyAll();
    while (held_) {
      changed_.Wait(mutex_);
    }
  }

  const CoreConfig config_;
  const uint64_t epoch_;
  std::deque<std::unique_ptr<Stage>> stages_;
  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t frames_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::coordinator
